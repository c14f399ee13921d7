# ruff: noqa: E501 (lines stand as they are printed)
"""What engines, Kubernetes, Slurm and pip report of a job, as users paste it: each is diagnosed, a sound one is not."""

import pytest

from tests.unit.rocmatrix.diagnosis.known import ranked

REPORTED = (
    (
        "docker events oom",
        "container-memory-limit",
        "2026-11-22T10:00:00.1Z container oom 4f5 (image=rocm/pytorch:latest, name=train)\n2026-11-22T10:00:00.2Z container die 4f5 (execDuration=812, exitCode=137, image=rocm/pytorch:latest, name=train)\n",
    ),
    (
        "docker events 137",
        "killed-by-signal-9",
        "2026-11-22T10:00:00.2Z container die 4f5 (execDuration=812, exitCode=137, image=rocm/pytorch:latest, name=train)\n",
    ),
    (
        "docker events 139",
        "process-crashed",
        "2026-11-22T10:00:00.2Z container die 4f5 (execDuration=812, exitCode=139, image=rocm/pytorch:latest, name=train)\n",
    ),
    (
        "docker events 0",
        None,
        "2026-11-22T10:00:00.2Z container die 4f5 (execDuration=812, exitCode=0, image=rocm/pytorch:latest, name=train)\n",
    ),
    (
        "amd-smi 10.1 of Debian on a machine without a card",
        "rock-module-not-loaded",
        "ERROR:root:Drivers not loaded (amdgpu, amd_hsmp, ionic, bnxt_en drivers not found in modules)\n",
    ),
    (
        "inspect oom",
        "container-memory-limit",
        '[\n {\n  "Id": "x",\n  "State": {\n "Status": "exited",\n "Running": false,\n "OOMKilled": true,\n "Dead": false,\n "ExitCode": 137,\n "Error": "",\n',
    ),
    (
        "inspect ok",
        None,
        '[\n {\n  "Id": "x",\n  "State": {\n "Status": "running",\n "Running": true,\n "OOMKilled": false,\n "Dead": false,\n "ExitCode": 0,\n "Error": "",\n',
    ),
    (
        "inspect 139",
        "process-crashed",
        '  "State": {\n "Status": "exited",\n "Running": false,\n "OOMKilled": false,\n "Dead": false,\n "ExitCode": 139,\n "Error": "",\n',
    ),
    (
        "inspect kfd",
        "docker-custom-device-kfd-missing",
        '"State": {\n "Status": "created", "OOMKilled": false, "ExitCode": 128,\n "Error": "error gathering device information while adding custom device \\"/dev/kfd\\": no such file or directory",\n',
    ),
    (
        "inspect runc",
        "command-not-found",
        '"ExitCode": 127,\n "Error": "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: \\"python\\": executable file not found in $PATH: unknown",\n',
    ),
    (
        "describe oom",
        "k8s-oom-killed",
        "    State:          Waiting\n      Reason:       CrashLoopBackOff\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
    ),
    (
        "describe 139",
        "process-crashed",
        "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    139\n",
    ),
    (
        "describe gpu",
        "k8s-gpu-insufficient",
        "Events:\n  Type     Reason            Age   From               Message\n  ----     ------            ----  ----               -------\n  Warning  FailedScheduling  12s   default-scheduler  0/3 nodes are available: 3 Insufficient amd.com/gpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.\n",
    ),
    (
        "describe taint",
        "k8s-unschedulable",
        "  Warning  FailedScheduling  12s   default-scheduler  0/4 nodes are available: 1 node(s) had untolerated taint {amd.com/gpu: present}, 3 node(s) didn't match Pod's node affinity/selector.\n",
    ),
    (
        "image pull",
        "k8s-image-pull",
        '  Warning  Failed     3m (x4 over 5m)  kubelet  Failed to pull image "rocm/pytorch:rocm9": rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/rocm/pytorch:rocm9": not found\n  Warning  Failed  3m  kubelet  Error: ErrImagePull\n',
    ),
    (
        "pull limit",
        "docker-pull-limited",
        '  Warning  Failed  3m  kubelet  Failed to pull image "rocm/pytorch:latest": toomanyrequests: You have reached your pull rate limit.\n',
    ),
    (
        "pull auth",
        "k8s-image-pull",
        '  Warning  Failed  3m  kubelet  Failed to pull image "registry.local/x:1": failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized\n',
    ),
    (
        "evicted",
        "k8s-evicted",
        "  Warning  Evicted  3m  kubelet  The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 2Gi. Container train was using 90Gi, request is 0, has larger consumption of ephemeral-storage.\n",
    ),
    (
        "evicted mem",
        "k8s-evicted",
        "3m Warning Evicted pod/train The node was low on resource: memory. Threshold quantity: 100Mi, available: 20Mi.\n",
    ),
    (
        "admission",
        "k8s-admission",
        "  Warning  UnexpectedAdmissionError  3m  kubelet  Allocate failed due to requested number of devices unavailable for amd.com/gpu. Requested: 1, Available: 0, which is unexpected\n",
    ),
    (
        "mount",
        "k8s-mount-failed",
        '  Warning  FailedMount  3m  kubelet  MountVolume.SetUp failed for volume "data" : hostPath type check failed: /data is not a directory\n',
    ),
    (
        "pvc",
        "k8s-volume-unbound",
        "  Warning  FailedScheduling  3m  default-scheduler  0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.\n",
    ),
    (
        "createcontainer",
        "k8s-run-as-root-refused",
        '  Warning  Failed  3m kubelet Error: container has runAsNonRoot and image will run as root (pod: "x", container: y)\n',
    ),
    ("config", "k8s-config-missing", '  Warning  Failed  3m kubelet Error: secret "hf-token" not found\n'),
    (
        "psa",
        "k8s-run-as-root-refused",
        'Error from server (Forbidden): error when creating "job.yaml": pods "train" is forbidden: violates PodSecurity "restricted:latest": privileged (container "t" must not set securityContext.privileged=true)\n',
    ),
    (
        "deadline",
        "k8s-deadline",
        "Warning  DeadlineExceeded  3m  job-controller  Job was active longer than specified deadline\n",
    ),
    (
        "backoff",
        "k8s-backoff-limit",
        "Warning  BackoffLimitExceeded  3m  job-controller  Job has reached the specified backoff limit\n",
    ),
    (
        "liveness",
        "k8s-probe-restarted",
        "  Warning  Unhealthy  3m kubelet Liveness probe failed: HTTP probe failed with statuscode: 503\n  Normal Killing 3m kubelet Container vllm failed liveness probe, will be restarted\n",
    ),
    (
        "sandbox",
        "k8s-sandbox-failed",
        '  Warning  FailedCreatePodSandBox 3m kubelet Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox: plugin type="calico" failed (add): stat /var/lib/calico/nodename: no such file or directory\n',
    ),
    (
        "slurm time",
        "slurm-time-limit",
        "slurmstepd: error: *** JOB 4242 ON node7 CANCELLED AT 2026-11-22T10:00:00 DUE TO TIME LIMIT ***\n",
    ),
    (
        "slurm time of sacct",
        "slurm-time-limit",
        "4242           train.sh        gpu       acct          8    TIMEOUT      0:0\n4242.batch        batch                  acct          8  CANCELLED     0:15\n",
    ),
    ("slurm time of sacct -P", "slurm-time-limit", "4242|train.sh|gpu|acct|8|TIMEOUT|0:0\n"),
    (
        "slurm oom",
        "slurm-memory-limit",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4242.batch. Some of the step tasks have been OOM Killed.\n",
    ),
    (
        "slurm preempt",
        "slurm-preempted",
        "slurmstepd: error: *** JOB 4242 ON node7 CANCELLED AT 2026-11-22T10:00:00 DUE TO PREEMPTION ***\n",
    ),
    (
        "slurm node fail",
        "slurm-node-failed",
        "srun: error: Node failure on node7\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nslurmstepd: error: *** STEP 1.0 ON node7 CANCELLED AT 2026-11-22T10:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
    ),
    (
        "slurm cancelled",
        "slurm-cancelled",
        "slurmstepd: error: *** JOB 4242 ON node7 CANCELLED AT 2026-11-22T10:00:00 ***\n",
    ),
    ("slurm exit", "slurm-task-failed", "srun: error: node7: task 0: Exited with exit code 1\n"),
    ("slurm segv", "process-crashed", "srun: error: node7: task 3: Segmentation fault (core dumped)\n"),
    (
        "slurm gres",
        "slurm-submission-refused",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
    ),
    ("slurm gres2", "slurm-gres-unknown", "sbatch: error: Invalid generic resource (gres) specification\n"),
    (
        "slurm acct",
        "slurm-submission-refused",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
    ),
    (
        "slurm part",
        "slurm-submission-refused",
        "sbatch: error: invalid partition specified: gpu\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
    ),
    (
        "slurm qos",
        "slurm-submission-refused",
        "sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n",
    ),
    (
        "slurm step",
        "slurm-step-resources-held",
        "srun: error: Unable to create step for job 42: More processors requested than permitted\n",
    ),
    (
        "slurm mem",
        "slurm-step-resources-held",
        "srun: error: Unable to create step for job 42: Memory required by task is not available\n",
    ),
    (
        "slurm chdir",
        "slurm-folder-missing",
        "slurmstepd: error: couldn't chdir to `/home/x/y': No such file or directory: going to /tmp instead\n",
    ),
    ("slurm execve", "command-not-found", "slurmstepd: error: execve(): python: No such file or directory\n"),
    (
        "slurm auth",
        "slurm-credentials",
        "srun: error: Unable to allocate resources: Invalid user credential / munge\nslurm_load_partitions: Protocol authentication error\n",
    ),
    (
        "pip none",
        "pip-no-matching-rocm-wheel",
        "ERROR: Could not find a version that satisfies the requirement torch==2.9.1+rocm6.4 (from versions: 2.5.0)\nERROR: No matching distribution found for torch==2.9.1+rocm6.4\n",
    ),
    ("pip hash", "pip-hash-mismatch", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n"),
    (
        "pip space",
        "no-space-left-on-device",
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
    ),
    ("pip ext", "pip-externally-managed", "error: externally-managed-environment\n"),
    ("pip res", "pip-resolution-impossible", "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/\n"),
    (
        "pip conflict",
        "pip-resolution-impossible",
        "ERROR: Cannot install torch==2.9 and torchvision==0.20 because these package versions have conflicting dependencies.\n",
    ),
    (
        "pip whl",
        "pip-wheel-not-supported-on-platform",
        "ERROR: torch-2.9.1+rocm6.4-cp312-cp312-linux_x86_64.whl is not a supported wheel on this platform.\n",
    ),
    (
        "pip ssl",
        "certificate-untrusted",
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self signed certificate'))': /simple/torch/\n",
    ),
    (
        "pip timeout",
        "download-failed",
        "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='download.pytorch.org', port=443): Read timed out.\n",
    ),
    (
        "pip python",
        "pip-python-version",
        "ERROR: Package 'vllm' requires a different Python: 3.14.0 not in '<3.14,>=3.9'\n",
    ),
    (
        "pip wheel",
        "pip-wheel-build-failed",
        "  error: subprocess-exited-with-error\n  \u00d7 Building wheel for flash-attn (pyproject.toml) did not run successfully.\n  error: command '/usr/bin/hipcc' failed with exit code 1\nERROR: Failed building wheel for flash-attn\n",
    ),
    (
        "pip metadata",
        "python-module-missing",
        "error: metadata-generation-failed\nModuleNotFoundError: No module named 'torch'\n",
    ),
)


@pytest.mark.parametrize(("expected", "text"), [row[1:] for row in REPORTED], ids=[row[0] for row in REPORTED])
def test_report_of_an_engine_or_scheduler_is_diagnosed(expected, text):
    found = ranked(text).failures
    assert (found[0].signature.id if found else None) == expected
