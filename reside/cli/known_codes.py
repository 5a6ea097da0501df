"""The error codes and statuses of ReSide: what they mean, and what to do about them."""

from __future__ import annotations

from typing import Final

from reside.cli.explanation import CALL, OBJECT, PERMISSION, REQUEST, STACK, VERSION, Explanation

CODES: Final = (
    Explanation(
        "error",
        CALL,
        "The receiver has a bug, or an error without a code of its own (HTTP 500).",
        "read the message and the receiver's log: `reside replica logs NAME`",
    ),
    Explanation("invalid-input", CALL, "The input is wrong (HTTP 400).", "correct what the message names"),
    Explanation(
        "invalid-manifest",
        CALL,
        "The manifest of an image is missing, malformed, or has unknown members (HTTP 400).",
        "correct replica.yaml or contract.yaml as the message says (docs/model.md, section 2), and build again",
    ),
    Explanation(
        "invalid-name",
        CALL,
        "A name can't be that of a replica (HTTP 400).",
        "use at most 40 lower-case letters, digits and '-', beginning with a letter",
    ),
    Explanation(
        "load-refused",
        CALL,
        "A load request can't be carried out (HTTP 400).",
        "do what the message says, then load the image again (docs/loading.md has all rules)",
    ),
    Explanation(
        "not-allowed",
        CALL,
        "The caller lacks the permission that the message names (HTTP 403).",
        "`reside permission explain ACCOUNT REPLICA PERMISSION` says why; `reside permission grant` grants it",
    ),
    Explanation(
        "conflict",
        CALL,
        "The object has changed in the meantime, or its state does not allow the operation (HTTP 409).",
        "read it again, then decide again",
    ),
    Explanation(
        "not-ready",
        CALL,
        "Something does not exist or does not respond yet (HTTP 503).",
        "try again later; `reside doctor` shows which part is away",
    ),
    Explanation(
        "not-serving",
        CALL,
        "The receiver is starting, or can't authenticate callers now; it has done nothing (HTTP 503).",
        "nothing: clients send the call again by themselves",
    ),
    Explanation(
        "other-instance",
        CALL,
        "The call reached another process of the replica than its token was made for (HTTP 421).",
        "nothing: clients make a new token and send the call again",
    ),
    Explanation(
        "not-found",
        CALL,
        "The replica has no such contract or method (HTTP 404).",
        "compare the names with the contract; `reside replica describe NAME --output json` lists what it implements",
    ),
    Explanation(
        "unauthenticated",
        CALL,
        "The token of the call is missing, expired, used, or made for another receiver (HTTP 401).",
        "check the clocks with `reside doctor`, then send the call with a new token",
    ),
    Explanation(
        "unknown",
        VERSION,
        "The Sentinel reports no object of this version.",
        "nothing for an old version; else wait for the Sentinel: `reside replica describe kubernetes-sentinel`",
    ),
    Explanation(
        "starting",
        VERSION,
        "Its pods are being created, or none is ready yet.",
        "wait; `reside replica describe NAME` shows the reason if it lasts",
    ),
    Explanation("running", VERSION, "All of its pods are ready, or its Job runs.", "nothing"),
    Explanation(
        "degraded",
        VERSION,
        "Some of its pods are ready, but not all.",
        "`reside replica describe NAME` shows what keeps the others from being ready",
    ),
    Explanation(
        "running-outdated",
        VERSION,
        "An earlier version that still runs until the current one is ready.",
        "nothing; if it lasts, see the reason of the current version",
    ),
    Explanation("completed", VERSION, "The oneshot replica has ended with success.", "nothing"),
    Explanation("stopping", VERSION, "Its pods are being stopped, and some have not ended.", "wait until they end"),
    Explanation("stopped", VERSION, "It has no pods.", "nothing; `reside replica enable NAME` starts it"),
    Explanation(
        "error",
        VERSION,
        "It can't run, has failed, or was not healthy in time.",
        "see the reason in `reside replica describe NAME`; go back with `reside replica rollback NAME`",
    ),
    Explanation(
        "deleting",
        VERSION,
        "The replica is being deleted.",
        "wait; the objects that remain are in `reside replica describe NAME`",
    ),
    Explanation(
        "validating",
        REQUEST,
        "Alpha reads the image and its contracts, and the Sentinel previews the change.",
        "wait; an image whose registry can't be reached takes longest",
    ),
    Explanation(
        "invalid",
        REQUEST,
        "The request can't be carried out; its error message says why.",
        "`reside request show ID` has the message; correct the cause and load the image again",
    ),
    Explanation(
        "requires-approval",
        REQUEST,
        "The request waits for somebody who may approve it.",
        "`reside request show ID`, then `reside request approve ID` or `reside request reject ID`",
    ),
    Explanation("rejected", REQUEST, "Somebody has rejected it, or it has expired.", "load the image again"),
    Explanation(
        "approved",
        REQUEST,
        "It is approved, and has made a version.",
        "`reside replica list` shows whether it runs",
    ),
    Explanation(
        "pending",
        PERMISSION,
        "A replica has asked for it, and nobody has decided.",
        "`reside permission list --pending`, then `reside permission approve` or `reside permission reject`",
    ),
    Explanation("approved", PERMISSION, "It is granted.", "nothing; `reside permission explain` says whether in force"),
    Explanation("rejected", PERMISSION, "Somebody has refused it.", "`reside permission grant` grants it all the same"),
    Explanation("revoked", PERMISSION, "It was taken away.", "`reside permission grant` grants it again"),
    Explanation("requested", STACK, "The object is declared, and not applied yet.", "wait for the Sentinel"),
    Explanation("updated", STACK, "The object is applied as it is declared.", "nothing"),
    Explanation(
        "error",
        STACK,
        "The object can't be applied; the report says why.",
        "remove the cause; the Sentinel tries again by itself",
    ),
    Explanation("current", OBJECT, "Kubernetes has carried out what is declared.", "nothing"),
    Explanation("in-progress", OBJECT, "Kubernetes is carrying it out; the reason says what it waits for.", "wait"),
    Explanation("failed", OBJECT, "Kubernetes has given up; the reason says why.", "remove the cause, then load again"),
    Explanation("terminating", OBJECT, "It is being deleted.", "wait; `reside explain finalizer` if it lasts"),
)
