"""Changes that were changed back are told for an hour, without values and numbers."""

from __future__ import annotations

from reside.sentinel.guard.reverts import KEPT_S, Reverts
from reside.sentinel.objects.managed_fields import Managed

REPLICAS = Managed("kubectl-edit", ("f:spec", "f:replicas"))
IMAGE = Managed("other", ("f:spec", "f:image"))


def test_a_change_is_new_once_and_forgotten_an_hour_after_the_last_time() -> None:
    reverts = Reverts()
    assert reverts.note("Deployment/web", [REPLICAS], 0.0)
    assert not reverts.note("Deployment/web", [REPLICAS], 10.0)
    assert reverts.note("Deployment/web", [IMAGE], 20.0)
    assert reverts.texts("Deployment/web") == ("kubectl-edit changed spec.replicas", "other changed spec.image")
    assert reverts.next_end("Deployment/web") == KEPT_S + 10.0
    assert not reverts.expire("Deployment/web", KEPT_S)
    assert reverts.expire("Deployment/web", KEPT_S + 10.0)
    assert reverts.texts("Deployment/web") == ("other changed spec.image",)
    reverts.forget("Deployment/web")
    assert reverts.texts("Deployment/web") == ()
    assert reverts.next_end("Deployment/web") is None


def test_what_is_kept_is_bounded() -> None:
    reverts = Reverts()
    reverts.note("ConfigMap/a", [Managed("m", ("f:data", f"f:{number}")) for number in range(50)], 0.0)
    assert len(reverts.texts("ConfigMap/a")) == 8
    for number in range(1000):
        reverts.note(f"ConfigMap/{number}", [IMAGE], 1.0)
    assert reverts.texts("ConfigMap/a") == ()
    assert reverts.texts("ConfigMap/999") == ("other changed spec.image",)
    assert not reverts.note("ConfigMap/none", [], 2.0)
