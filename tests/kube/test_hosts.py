"""Hosts that must not be contacted, in every spelling that some downloader accepts; all families use this check."""

import pytest

from app.kserve.modeluri import InvalidURL
from app.kserve.modeluri import parse as parse_uri
from app.kserve.sources import host_problem
from app.kube.hosts import is_metadata_host, refusal, spelling_problem
from app.llmaz.source import SourceError
from app.llmaz.source import parse_uri as parse_source
from app.llmkube.source import host, parse, problem

REFUSED = [
    "169.254.169.254",
    "169.254.169.254.",
    "169.254.169.254..",
    "169.254.170.2",
    "2852039166",
    "0xa9fea9fe",
    "0XA9FEA9FE",
    "0251.0376.0251.0376",
    "0xA9.0xFE.43518",
    "169.254.43518",
    "00000251.0xfe.43518",
    "::ffff:a9fe:a9fe",
    "::ffff:169.254.169.254",
    "::ffff:0:a9fe:a9fe",
    "::a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "64:ff9b:1:1:a9:fea9:fe00:0",
    "64:ff9b:1:ffa9:fe:a9fe::",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::",
    "2001:db8::5efe:a9fe:a9fe",
    "2001:db8::200:5efe:a9fe:a9fe",
    "fe80::1",
    "fe80::1%25eth0",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "FD00:0EC2:0:0:0:0:0:0254",
    "100.100.100.200",
    "168.63.129.16",
    "metadata",
    "api.metadata.cloud.ibm.com",
    "opc.oraclecloud.com",
    "instance-data.eu-west-1.compute.internal",
    "METADATA.google.internal",
    "metadata.google.internal..",
    "metadata.tencentyun.com",
    "metadata.azure.internal",
]
UNREADABLE = [
    "169\u3002254\u3002169\u3002254",
    "169\uff61254\uff61169\uff61254",
    "169.254.169\u00ad.254",
    "metadata.g\u200boogle.internal",
    "metadata.google.interna\u2060l",
    "\u2460\u2465\u2468.254.169.254",
    "h\u00f6st.example",
    "%31%36%39.254.169.254",
    "169.254.169.254%00.example",
    "169.254.169.25[4-4]",
    "{169.254.169.254,x}",
    "425.510.425.510",
    "4294967296",
    "1" * 5000,
    "a" * 254,
    "64:ff9b:1::a9fe:a9fe:1:2:3:4:5",
    "",
]
ALLOWED = [
    "example.com",
    "xn--hst-sna.example",
    "huggingface.co.",
    "model_store",
    "10.0.0.1",
    "127.0.0.1",
    "2001:db8::1",
    "64:ff9b::c000:201",
    "64:ff9b:1::c000:201",
    "169.254.169.254.nip.io",
    "metadata.example.com",
    "metadata.google.internal.example.com",
    "mymetadata.goog",
    "oraclecloud.com",
]


@pytest.mark.parametrize("name", REFUSED)
def test_a_metadata_service_is_refused_in_every_spelling(name: str) -> None:
    assert is_metadata_host(name)
    assert refusal(name)


@pytest.mark.parametrize("name", UNREADABLE)
def test_rejects_hosts_that_downloaders_parse_differently(name: str) -> None:
    assert spelling_problem(name)
    assert refusal(name)


@pytest.mark.parametrize("name", ALLOWED)
def test_other_hosts_pass(name: str) -> None:
    assert refusal(name) == ""


@pytest.mark.parametrize("name", REFUSED + UNREADABLE)
def test_every_family_refuses_metadata_hosts(name: str) -> None:
    """The host is written into each family's kind of address."""
    authority = f"[{name}]" if ":" in name else name
    url = f"http://{authority}/m.gguf"
    assert problem(parse(url)) or is_metadata_host(host(url))
    try:
        assert not name or host_problem(parse_uri(f"https://{authority}/m"))
        assert not name or host_problem(parse_uri(f"oci://{authority}/m:1"))
    except InvalidURL:
        pass
    with pytest.raises(SourceError):
        parse_source(f"oss://bucket.{authority}/m")


@pytest.mark.parametrize("mark", "#?")
def test_a_host_that_some_clients_take_for_a_user_is_refused(mark: str) -> None:
    address = f"example.com{mark}@169.254.169.254"
    assert "ambiguous" in problem(parse(f"http://{address}/m.gguf"))
    assert "ambiguous" in host_problem(parse_uri(f"https://{address}/m"))
    with pytest.raises(SourceError):
        parse_source(f"oss://bucket.{address}/m")
    assert problem(parse(f"https://example.com/m.gguf{mark}user@example.com")) == ""


def test_the_host_of_oss_includes_the_bucket() -> None:
    with pytest.raises(SourceError):
        parse_source("oss://metadata.google.internal/m")
    assert parse_source("oss://bucket.10.0.0.1:9000/m").path(skip=True)
