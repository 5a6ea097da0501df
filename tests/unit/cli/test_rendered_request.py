"""What an approver sees of a load request."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from reside.cli.rendered_request import render_request
from reside.model.entities import ApproveRequest, LoadRequest

CONTENT = ApproveRequest(
    info={"name": "web", "class": "long-running", "exclusive": False, "scalable": True},
    name="web",
    identity="registry.example.org/web",
    digest="sha256:1",
)


def rendered(request: LoadRequest) -> list[str]:
    written = StringIO()
    Console(file=written, width=120).print(render_request(request))
    return [" ".join(line.split()) for line in written.getvalue().splitlines()]


def test_advice_has_one_row_for_each_rule_with_all_objects() -> None:
    advice = [
        {"rule": rule, "object": f"Deployment/web-{version}", "message": message, "reason": "It matters."}
        for rule, message in (("network-policies", "everybody may reach it"), ("read-only-root", "it is not"))
        for version in (1, 2)
    ]
    request = LoadRequest(
        id=1,
        status="requires-approval",
        image="image",
        owner="co_z",
        approve_request=CONTENT,
        preview={"changes": [], "advice": advice},
    )
    lines = rendered(request)
    assert "network-policies Deployment/web-1, Deployment/web-2 everybody may reach it" in lines
    assert "read-only-root Deployment/web-1, Deployment/web-2 it is not" in lines


def test_an_image_without_probes_is_said_to_have_none() -> None:
    """Its pods count as ready whether it works or not, which the line about its health does not show."""
    request = LoadRequest(id=1, status="requires-approval", image="image", owner="co_z", approve_request=CONTENT)
    without = request.model_copy(update={"approve_request": CONTENT.model_copy(update={"probes": "none"})})
    assert not [line for line in rendered(request) if line.startswith("probes")]
    assert "probes none: a pod counts as ready once its process runs" in rendered(without)
