import pytest
pytestmark = pytest.mark.container

def test_x(checkout, client):
    import time
    checkout.play()
    for n in range(2):
        t=time.monotonic()
        ended = checkout.run(*checkout.night_argv())
        print(ended.status, ended.text, time.monotonic()-t)
    print(client.images.get("rocmatrix-test/small-base:1").attrs["Size"])
    assert 0
