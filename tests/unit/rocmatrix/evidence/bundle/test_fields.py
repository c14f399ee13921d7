"""Names and keys that only the field, the row or the sentence around them shows leave no bundle; values invented."""

import time

import pytest

from rocmatrix.evidence.bundle import clean
from rocmatrix.evidence.bundle.fields import FIELDS
from rocmatrix.evidence.bundle.identity import Identity

WHO = Identity()


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("NodeName=barad01 NodeAddr=barad01-ib NodeHostName=barad01", "barad01"),
        ("COMPUTERNAME=DESKTOP-9QK2LMN", "9QK2LMN"),
        ("NAME=BAGEND-PC", "BAGEND"),
        ("POD_NAME=entwash-0 POD_NAMESPACE=ent-prod", "ent"),
        ("_HOSTNAME=edoras", "edoras"),
        ("{'owner': 'narvi'}", "narvi"),
        ("user.name=Legolas Greenleaf", "Greenleaf"),
        ("Node:             worker-9/10.40.8.19", "worker-9"),
        ("DISPLAY=bagend:0", "bagend"),
        ("no_proxy=localhost,.erebor.example", "erebor"),
        ('{"auths": {"harbor.fangorn.example": {}}}', "fangorn"),
        ("filter (uid=narvi)", "narvi"),
        ("client --user bofur", "bofur"),
        ("set api-key 4f1e2d3c4b5a69788796a5b4c3d2e1f0", "4f1e2d3c"),
        ("routing_key: e93facc04764012d7bfb002500d5d1a6", "e93facc0"),
        ('{"key":"0f1e2d3c4b5a69788796a5b4c3d2e1f0"}', "0f1e2d3c"),
        ("using RSA key 9F8E7D6C5B4A39281706F5E4D3C2B1A09F8E7D6C", "9F8E7D6C"),
        ("ED25519 SHA256:Ab9Cd8Ef7Gh6Ij5Kl4Mn3Op2Qr1St0Uv9Wx8Yz7A agent", "Ab9Cd8"),
        ("pcsk_4Xy7Zq_9LmNoPqRsTuVwXyZ0123456789abcdef", "9LmNoPq"),
        ("node_id=3f1c2d4e5a6b7c8d9e0f", "3f1c2d4e"),
        ("-- Boot 27ae41e4649b934ca495991b7852b855 --", "27ae41e4"),
        ("call +49 30 901820 77", "901820"),
        ("elrond:x:1007:1007:Elrond Peredhel,,,:/home/elrond:/bin/bash", "Peredhel"),
        ("render:x:992:elrond,glorfindel", "glorfindel"),
        ("elrond    20177 98.7  3.1 41239876 4123456 ?  Rl  10:02  55:11 python", "elrond"),
        ("elrond   pts/3        vilya.imladris.example   Mon Sep  1", "vilya"),
        ("4410221|train|gpuq|ringbearers|8|COMPLETED|0:0|rohan12", "ringbearers"),
        ("100.101.7.33   celebrimbor-forge    narvi@   linux", "narvi"),
        ("<6>1 2026-09-01T10:02:11Z imladris.valley.example kernel - - - x", "imladris"),
        ("nodes: barad[01-02]", "barad"),
        ("machine artifactory.erebor.example\nlogin oin7\npassword x", "oin7"),
        ("[theoden02:44122] *** Process received signal ***", "theoden02"),
        ("CRON[5512]: (eomer) CMD (x)", "eomer"),
        ("rank 3 with PID 0 on node theoden02 exited on signal 9", "theoden02"),
        ("Running on lorien-g3 with 8 GPUs", "lorien"),
        ("[rivendell-07] loss 2.1", "rivendell"),
        ("401 - user celeborn123", "celeborn"),
        ("key 7F3A-99B1-CC20-41DE", "99B1"),
        ("invalid for user samwise", "samwise"),
        ("waiting. Address: mordor-login, port 29400", "mordor"),
        ('connection to server at "db-erebor-2", port 5432 failed', "erebor"),
        ("pull access denied for harbor.fangorn.example/ents/trainer", "ents"),
        ("pod entwash-trainer-0 in namespace ent-prod", "ent"),
        ("wandb: Syncing run glad-moon-44 (shire-research/lora)", "shire"),
        ("shire-internal/mithril-7b is not a local folder", "mithril"),
        ("opened ~/vault/elrond/bars.csv", "elrond"),
        ("scp boromir@203.0.113.66:x .", "boromir"),
        ("pelennor-nas:/vol1 9.8T 9.1T 700G 93%", "pelennor"),
        ("directory: /srv/eowyn/Rohan Capital/research", "Capital"),
        ("   UserId=gimli(20012) GroupId=dwarves(2000) MCS_label=N/A", "gimli"),
        ("   UserId=root(0) GroupId=dwarves(2000) Account=moria Comment=dig_7", "dwarves"),
        ("   Priority=1 Nice=0 Account=moria QOS=normal", "moria"),
        ("   Reservation=khazad_2026", "khazad"),
        ("E: ID_SERIAL_SHORT=S4EVNX0R123456", "S4EVNX0R"),
        ("nvme0: SN: S4EVNF0M123456", "S4EVNF0M"),
        ("device sn=8273645", "8273645"),
        ("EUI64 0x0002c90300a1b2c3", "a1b2c3"),
        ("search halls.moria.example dale.example", "moria"),
        ("commit 3f2b by Thorin Oakenshield <thorin@erebor.example>", "Oakenshield"),
        ('From: "Balin" <b@erebor.example>', "Balin"),
        ('audit: type=1400 uid=1000 acct="durin" exe="/usr/bin/su"', "durin"),
        ("//nas/share on /mnt/share type cifs (rw,domain=MORIA)", "MORIA"),
    ],
)  # fmt: skip
def test_value_next_to_its_word_is_taken_out(text, gone):
    assert gone.lower() not in clean.clean(text, WHO).lower()


@pytest.mark.parametrize(
    "text",
    [
        "owner: root, group: render, mode: 0660",
        "for user space applications, in namespace at::native, no member in namespace 'rocwmma'",
        "node_name is not set; node: 1; nodes: 2; job_name: train; workspace: 29160000; bucket_cap_mb=25",
        "Address: 0x7f2c1a400000, port 1 of 2; Address sizes: 48 bits; 127.0.0.1 localhost",
        "docker run --user 1000:1000 --group-add=992 rocm/pytorch:latest",
        "special tokens: <|im_start|> <|im_end|>; \"key\": \"loss\"; key 0x0f00; api key is missing",
        "meta-llama/Llama-3.1-8B is not a local folder and is not a valid model identifier",
        "on ubuntu-24.04, from llama-3, on flan-t5, by qwen-2, host gfx1100, node 0; user 12.34s; on rank-0",
        "~/.bashrc; ~/.cache/miopen/3.5.0 is empty; cd ~ && ls",
        'NAME="Ubuntu"',
        "UserId=root(0) GroupId=video(44) Account=(null) Comment=(null)",
        "search for kernels: 3 found; Search domain of the sweep",
        "sn 3 of 12; sn: none; SN = step; isn't 123456; the SN of a card",
        "acct=root; tensor<f32>, std::vector<Half>, class Foo Bar <double>",
        "DISPLAY=:0",
        "root      4242  0.0  0.0      0     0 ?        S    10:02   0:00 [kworker/u64:1]",
        "video:x:44:",
        "tensor[3-5] layers[01] grid[1024,1,1]; [rank0:123]",
        "BOOT_IMAGE=/vmlinuz-6.14.0-27-generic ro quiet iommu=pt",
        "ghcr.io/ggml-org/llama.cpp:server-rocm",
        "Build ID: 4f3c2b1a9d8e7f6050413223140516273849a0b1, git commit 10a14fb9c2d3e4f5061728394a5b6c7d8e9f0a1b",
        "Marketing Name:          AMD Instinct MI300X",
        "as_tensor_with_requires_grad_True_and_dtype_float16",
    ],
)  # fmt: skip
def test_line_that_a_failure_is_read_from_stays(text):
    assert clean.clean(text, WHO) == text


@pytest.mark.parametrize(
    "unit", ["123|a ", "key: 0a", "node a1 ", "ipmitool -U ", "a:x:1:1:", "~/.a/b/", "owner=a\n", "1.2.3.4 a "]
)
def test_time_of_the_fields_grows_with_the_length(unit):
    def seconds(length):
        text, begun = unit * (length // len(unit)), time.process_time()
        for form, instead in FIELDS:
            form.sub(instead, text)
        return time.process_time() - begun

    assert any(seconds(16_000) < 3 * max(seconds(8_000), 0.001) for _ in range(4))
