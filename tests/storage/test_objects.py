"""Buckets, on a server that speaks S3."""

import pickle

import pytest

from difflens.core.addresses import locate
from difflens.core.errors import UnreadableFile
from difflens.storage import places

ODD = "a b+c%41#é?.bin"


@pytest.fixture(params=["moto", "s3rver"])
def bucket(request, monkeypatch):
    """A bucket in each of two servers; the settings lead there."""
    store = request.getfixturevalue(request.param)
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    places.forget()
    client = store.client()
    if not any(each["Name"] == "bucket" for each in client.list_buckets()["Buckets"]):
        client.create_bucket(Bucket="bucket")
    for key in (f"m/{ODD}", "m/empty", "m/sub/x"):
        client.put_object(Bucket="bucket", Key=key, Body=key.encode() * (key != "m/empty"))
    yield store
    places.forget()


@pytest.mark.usefixtures("bucket")
def test_files_of_a_bucket_are_read_and_listed():
    folder = locate("s3://bucket/m")

    assert places.names(folder) == [ODD, "empty", "sub"]
    assert places.is_folder(folder)
    assert places.is_folder(folder / "sub")
    assert not places.is_folder(folder / ODD)
    assert places.is_file(folder / ODD)
    assert not places.is_file(folder / "sub")
    assert not places.is_file(folder / "none")
    file = places.open_file(folder / ODD)
    assert file.read(0, file.size) == f"m/{ODD}".encode()
    assert places.open_file(folder / "empty").size == 0


@pytest.mark.usefixtures("bucket")
def test_what_is_not_there_is_one_line():
    with pytest.raises(UnreadableFile, match="s3://bucket/none: no such file"):
        places.open_file(locate("s3://bucket/none"))
    with pytest.raises(UnreadableFile, match="s3://no-bucket/x: no such bucket"):
        places.open_file(locate("s3://no-bucket/x"))
    with pytest.raises(UnreadableFile, match="no such bucket"):
        places.names(locate("s3://no-bucket/x"))


def test_no_credential_is_in_a_pickled_file(bucket):
    file = places.open_file(locate("s3://bucket/m/sub/x"))

    text = pickle.dumps(file) + repr(file).encode() + repr(vars(file)).encode()

    assert bucket.secret.encode() not in text
    assert bucket.key.encode() not in text
    assert b"Signature" not in text
