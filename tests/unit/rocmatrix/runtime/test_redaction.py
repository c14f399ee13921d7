# ruff: noqa: E501 (texts stand as they were printed)
"""What is shared names no person and no machine, and keeps what the diagnosis needs."""

import pytest

from rocmatrix.runtime.redaction import redacted
from tests.fixtures.log_facts import FACTS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('File "/home/greg/Apps/main.py", line 3', 'File "/home/<user>/Apps/main.py", line 3'),
        (r"C:\Users\Greg\venv\torch", r"C:\Users\<user>\venv\torch"),
        ("Using eno4:10.3.68.117<0>", "Using eno4:<address><0>"),
        ("Using enp65s0f0:2001:db8:85a3::8a2e:370:7334<0>", "Using enp65s0f0:<address><0>"),
        ("failed to connect to [fd00:abcd:1::17]:29500", "failed to connect to [<address>]:29500"),
        ("failed to connect to [fd00::17]:29500", "failed to connect to [<address>]:29500"),
        ("New session 4 of user mkowalski.", "New session 4 of user <name>."),
        ("session opened for user root(uid=0) by hv(uid=7)", "session opened for user root(uid=0) by <name>(uid=7)"),
        ("Hostname set to <render-box.fritz.box>.", "Hostname set to <host>."),
        ("Successfully assigned ml/ft-xk2lp to worker-07", "Successfully assigned <name> to <host>"),
        ("Unable to contact slurm controller (ctl01.hpc.x.org)", "Unable to contact slurm controller (<host>)"),
        ("Name or service not known: 'trainer-0.svc.ml'", "Name or service not known: '<host>'"),
        ("User: arn:aws:iam::123456789012:user/jdoe is", "User: <name> is"),
        ("https://wandb.ai/jane-doe/secret/runs/abc123", "https://wandb.ai/<name>/runs/abc123"),
        ("(Request ID: Root=1-65f0c0de-0a1b2c3d4e5f)", "(Request ID: Root=<id>)"),
        (r"C:\\Users\\Jo Müller\\AppData", r"C:\\Users\\<user>\\AppData"),
        (r"\\wsl.localhost\Ubuntu-24.04\home\tk\rocm", r"\\wsl.localhost\Ubuntu-24.04\home\<user>\rocm"),
        ("MacBook-of-Lena:rocm lena$ docker ps", "<host>:rocm <user>$ docker ps"),
        ("Serial Number (system): C02ZK0AAMD6T", "Serial Number (system): <id>"),
        ("inet fe80::a86b:69ff:fe67:e3fe%veth1 up", "inet <address> up"),
        ("ether 3c:7c:3f:00:12:ab", "ether <mac>"),
        ("HF_TOKEN=hf_abcdefghijklmnop", "HF_TOKEN=<secret>"),
        ("MY_API_KEY: s3cr3tvalue", "MY_API_KEY: <secret>"),
        ("pip install --index-url https://me:pw@host/simple", "pip install --index-url https://<user>:<secret>@host/simple"),
        ("mail jane.doe@example.org", "mail <address>"),
        ("Oct  7 12:58:23 my-desktop kernel: [ 2237.944235] amdgpu", "Oct  7 12:58:23 <host> kernel: [ 2237.944235] amdgpu"),
        ("tf144:143468:143535 [1] NCCL INFO", "<host>:143468:143535 [1] NCCL INFO"),
        ("Serial Number: 6923004150", "Serial Number: <id>"),
        ("api_key=abcd1234", "api_key=<secret>"),
        ("password: hunter2", "password: <secret>"),
        ('{"password": "hunter2", "x": 1}', '{"password": "<secret>", "x": 1}'),
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer <secret>"),
        ("Authorization: Basic bWU6cHc3NzE=", "Authorization: Basic <secret>"),
        ("Basic bWU6cHc3NzE= was sent", "Basic <secret> was sent"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI", "AWS_SECRET_ACCESS_KEY=<secret>"),
        ("wandb login 0123456789abcdef0123", "wandb login <secret>"),
        ("Set-Cookie: session=abc; Path=/", "Set-Cookie: <secret>"),
        ("MASTER_ADDR=node17.corp", "MASTER_ADDR=<host>"),
        ("MASTER_ADDR=node17", "MASTER_ADDR=<name>"),
        ("2026-11-22T10:00:00.123+00:00 node17 systemd: Started", "2026-11-22T10:00:00.123+00:00 <host> systemd: Started"),
        ("srun: error: node[17-18]: tasks 0-3: Killed", "srun: error: <host>: tasks 0-3: Killed"),
        ("slurmstepd: error: *** JOB 42 ON node7 CANCELLED AT 2026", "slurmstepd: error: *** JOB 42 ON <host> CANCELLED AT 2026"),
        ("  host      : node17", "  host      : <host>"),
        ("ssh: connect to host node17 port 22: refused", "ssh: connect to host <host> port 22: refused"),
        ("the store on (node17, 29500)", "the store on (<host>, 29500)"),
        ("on deep7 by karla", "on <name> by <name>"),
        (r'{"log":"{\"api_key\": \"abc def-123\", \"x\": 1}"}', r'{"log":"{\"api_key\": \"<secret>\", \"x\": 1}"}'),
        (r'm="{\\\"password\\\":\\\"hunter22\\\",\\\"n\\\":1}"', r'm="{\\\"password\\\":\\\"<secret>\\\",\\\"n\\\":1}"'),
        (r'{\"password\": \"123456\"}', r'{\"password\": \"<secret>\"}'),
        (r'\u0022token\u0022:\u0022zzz111\u0022,', r'\u0022token\u0022:\u0022<secret>\u0022,'),
        ("&quot;api_key&quot;:&quot;qq11&quot;", "&quot;api_key&quot;:&quot;<secret>&quot;"),
        ('--token "abcdef" --x 1', '--token "<secret>" --x 1'),
        (r'--token \"abcdef\" --x 1', r'--token \"<secret>\" --x 1'),
        ("password=a&b;c", "password=<secret>;c"),
        ('"password": "a\\"zz9 b", "x": 1', '"password": "<secret>", "x": 1'),
        ('"tokens": ["zz8", "zz9"], "x": 1', '"tokens": [<secret>], "x": 1'),
        ("{'secret': b'zz9'}", "{'secret': b'<secret>'}"),
        ("PASSWORD => zz9", "PASSWORD => <secret>"),
        ('token := "zz9"', 'token := "<secret>"'),
        ("&#34;token&#34;: &#34;zz9", "&#34;token&#34;: &#34;<secret>"),
        ("%22token%22%3A%22zz9", "%22token%22%3A%22<secret>"),
        ('--token "ab zz9" --x 1', '--token "<secret>" --x 1'),
        ("num tokens => 12", "num tokens => 12"),
        ("password: |\n  hunter2 more\n\n  zz9\nnext: 1", "password: <secret>\nnext: 1"),
        ("  api_key: >-\n    zz9\n    zz8\n  other: x", "  api_key: <secret>\n  other: x"),
        ("password: |\r\n  zz9\r\n\r\n  zz8\r\nnext: 1\r\n", "password: <secret>\r\nnext: 1\r\n"),
        (r'{"data": "token: |\r\n  zz9\r\n  zz8\r\nnext: 1"}', r'{"data": "token: <secret>\r\nnext: 1"}'),
        ("- name: X\n  tls_private_key: &a |2  # c\n      zz9\n  k: v", "- name: X\n  tls_private_key: <secret>\n  k: v"),
        (r'{"data": "token: |\n    zz9\n    zz8\nnext: 1"}', r'{"data": "token: <secret>\nnext: 1"}'),
        (r'{"b": "{\"token\": \"a\\\"zz9\", \"n\": 1}"}', r'{"b": "{\"token\": \"<secret>\", \"n\": 1}"}'),
        (r'\\\"password\\\": \\\"a\\\\\\\"zz9\\\", \\\"n\\\": 1', r'\\\"password\\\": \\\"<secret>\\\", \\\"n\\\": 1'),
        ("tokens: [zz9, zz8]", "tokens: [<secret>]"),
        ("password:\n    zz9\nnext: 1", "password:\n    <secret>\nnext: 1"),
        ("db:\n  password:   # of the store\n      zz9\n      zz8\n  port: 1", "db:\n  password:   # of the store\n      <secret>\n      <secret>\n  port: 1"),
        ('{\n  "password":\n      "zz9",\n  "n": 1\n}', '{\n  "password":\n      <secret>\n  "n": 1\n}'),
        ("tokens:\n- zz9\n- 'zz8'\nnext: 1", "tokens:\n- <secret>\n- <secret>\nnext: 1"),
        ("  api_keys:\r\n    - zz9\r\n    - zz8\r\n", "  api_keys:\r\n    - <secret>\r\n    - <secret>\r\n"),
        ("secrets:\n  db: zz9\n  n: 12\nnext: 1", "secrets:\n  db: <secret>\n  n: 12\nnext: 1"),
        ('"tokens": [\n    "zz9",\n    "zz8"\n  ], "x": 1', '"tokens": [<secret>], "x": 1'),
        ("credentials: {db: zz9, web: zz8}", "credentials: {<secret>}"),
        ("- name: HF_TOKEN\n  value: zz9", "- name: HF_TOKEN\n  value: <secret>"),
        ('{"name": "DB_PASSWORD", "value": "zz9"}', '{"name": "DB_PASSWORD", "value": "<secret>"}'),
        ('declare -x GITLAB_PAT="zz9zz9zz9"', 'declare -x GITLAB_PAT="<secret>"'),
        ('"Env": ["DB_PASS=zz9zz9", "A=1"]', '"Env": ["DB_PASS=<secret>", "A=1"]'),
        ("export OPENAI_KEY=zz9zz9zz9", "export OPENAI_KEY=<secret>"),
        ("    client-key-data: LS0tLS1CRUdJTiBSU0E=", "    client-key-data: <secret>"),
        ('{"auths": {"ghcr.io": {"auth": "enp6OnBhc3M="}}}', '{"auths": {"ghcr.io": {"auth": "<secret>"}}}'),
        ("machine h login me password zz9", "machine h login me password <secret>"),
        ("sshpass -p zz9 ssh h", "sshpass -p <secret> ssh h"),
        ("redis://:zz9@cache:6379/0", "redis://<user>:<secret>@cache:6379/0"),
        ("https://x.blob/c?sv=2024&sig=zz9%2Bzz8&se=1", "https://x.blob/c?sv=2024&sig=<secret>&se=1"),
        ("hf_abcdefghijklmnop and xoxb-123456789-abc", "<token> and <token>"),
        ("me:$apr1$abcdefgh$0123456789abcdefghijkl", "me:<token>"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\nzz9\n-----END OPENSSH PRIVATE KEY-----\nnext", "<secret>\nnext"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nzz9\n-----END PGP PRIVATE KEY BLOCK-----", "<secret>"),
        ("Private-Lines: 2\nAAAAzz9\nzz8=\nPrivate-MAC: 00", "Private-Lines: 2\n<secret>Private-MAC: 00"),
    ],
)  # fmt: skip
def test_personal_data_is_removed(text, shown):
    assert redacted(text, ("deep7", "karla")) == shown


@pytest.mark.parametrize(
    "text",
    [
        "headers={'Authorization': 'token S3cr3tS3cr3t'}",
        "('authorization', 'Bearer S3cr3tS3cr3t')",
        "os.environ['HF_TOKEN'] = 'S3cr3tS3cr3t'",
        '["HF_TOKEN", "S3cr3tS3cr3t"]',
        "(b'x-api-key', b'S3cr3tS3cr3t')",
        "ENV HF_TOKEN S3cr3tS3cr3t",
        "setenv WANDB_API_KEY S3cr3tS3cr3t",
        "│ hf_token │ S3cr3tS3cr3t │",
        "export HF_TOKEN=\\\nS3cr3tS3cr3t\n",
        "<password>S3cr3tS3cr3t</password>",
        "AccountName=x;AccountKey=S3cr3tS3cr3t==;EndpointSuffix=x",
        "Uid=sa;Pwd=S3cr3tS3cr3t;Encrypt=yes",
        "ansible_become_pass: S3cr3tS3cr3t",
        "mysql -u root -pS3cr3tS3cr3t -h db",
        'wandb.login(key="S3cr3tS3cr3t")',
        "wandb_key='S3cr3tS3cr3t'",
        "hf auth login -t S3cr3tS3cr3t",
        "JSESSIONID=S3cr3tS3cr3t",
        "cookies={'session': 'S3cr3tS3cr3t'}",
        "hvs.S3cr3tS3cr3tS3cr3tS3cr3t",
        "kind: Secret\nmetadata:\n  name: a\ndata:\n  wandb: S3cr3tS3cr3t\n  hf: S3cr3tS3cr3t\n",
        "apiVersion: v1\ndata:\n  wandb: S3cr3tS3cr3t\nkind: Secret\n",
        "AAAAS3cr3tS3cr3tAAAA\nAAAAS3cr3tS3cr3tAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        "PuTTY\nPrivate-Lines: 2\nS3cr3tS3cr3t\nS3cr3tS3cr3t\n",
        "https://user:p@S3cr3tS3cr3t@host/x",
    ],
)
def test_secret_is_removed_however_it_is_laid_out(text):
    assert "S3cr3t" not in redacted(text, ())


@pytest.mark.parametrize(
    "text", ["2026-11-22T10:00:00Z ERROR vllm: x", "Basic Information of the card", "Unable to contact slurm controller (connect failure)", "c10::Error: HIP error", "std::cafe::babe::f00d()",
             "listening on [::1]:6006 and [::]:6006", "at 12:30:45, 0000:03:00.0 and c5:00.0", "session opened for user root(uid=0)", "10 nodes assigned 2/3 to a", "a basic example", "tokens: 128, max_tokens=4096", "On the host: ls /dev/kfd", "pad_token = eos_token; x",
             "tokens: [1,2]", "input_tokens=[101, 2023]", '{"tokens": [1,2], "n": 3}', "tokens=tensor([1, 2])", "tokens: [[1, 2], [3]]", "tokens: [1, ..., 7]",
             "password:\nnext: 1", "tokens:\n  input: 12\n  output: 7\n", "token counts:\n    12 in\n", "HSA_OVERRIDE_GFX_VERSION=11.0.0", "CACHE_KEY: 17", "tokens:\n- 12\n- 13\n",
             "Private-Lines are none", "https://pypi.example/simple?key=1", "auth: none",
             "PWD=/work", "forward_pass=0.31", "kind: ConfigMap\ndata:\n  size: 17\n", "data:\n  size: big\nkind: ConfigMap\n", "tokens | 1234.5678 |", "('token', 'word')", "env TOKENIZERS_PARALLELISM false"]
)  # fmt: skip
def test_text_without_a_secret_stays(text):
    assert redacted(text, ()) == text


@pytest.mark.parametrize("text", FACTS)
def test_redaction_keeps_facts_for_the_diagnosis(text):
    assert redacted(text, ("deep7",)) == text


def test_redaction_of_hostile_lines_ends():
    for hostile in (
        "a" * 100_000,
        "1." * 50_000,
        "f:" * 50_000,
        "a@" * 50_000,
        "Basic " * 5_000,
        "host " * 5_000,
        "token" * 5_000,
        "/home/" * 20_000,
        "x-" * 50_000,
        "token:\n" * 20_000,
        "tokens: [" * 10_000,
        "secrets:\n" + "  a: b\n" * 20_000,
        "tokens:\n" + "  - b\n" * 20_000,
        '"tokens": [\n"' * 10_000,
        "name: token " * 10_000,
        "A_" * 50_000,
        " " * 100_000,
    ):
        assert isinstance(redacted(hostile, ()), str)  # a form that ran away would never return
