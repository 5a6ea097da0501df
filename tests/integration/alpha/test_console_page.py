"""The page of `examples/typescript/console` in a real browser: it shows Alpha's replicas as they change.

With the variable RESIDE_PICTURES, the pictures of the documentation are written into that folder.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
import yaml
from integration.alpha.test_system_load import push_system
from support.alpha_cluster import AlphaCluster, Client, Servers, alpha_cluster
from support.browser import Page, browser_page
from support.eventually import eventually
from support.ports import free_port
from support.replicas import variables
from support.typescript import TypeScript, running

from reside.alpha import bootstrap, records
from reside.jazz import Credentials
from reside.model.alpha_contract import READ_REPLICAS
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID
from reside.replica import ReplicaSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[3] / "examples"
CONSOLE, CONTRACT = EXAMPLES / "typescript" / "console", EXAMPLES / "contracts" / "console.v1"
INFO = {"class": "long-running", "exclusive": True, "scalable": True}
SYSTEM = ["seed", "alpha", "kubernetes-sentinel", "console"]
NEW = ["greeter", "caller", "report"]
WITHIN_S = 60.0
WIDE = 530
"""Height of the pictures, in CSS pixels."""
TIMES = """
globalThis.times = {};
new MutationObserver(() => {
  for (const name of document.querySelectorAll("#rows .name")) times[name.firstChild.textContent] ??= Date.now();
}).observe(document.getElementById("rows"), { childList: true });
"""
"""Records when the name of a replica appears for the first time."""


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster) -> Client:
    return await cluster.admin()


@dataclass(frozen=True)
class Console:
    """A running console, and a browser in which its page waits for the permission of its account."""

    secret: str
    http: httpx2.AsyncClient
    page: Page
    account: str

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"{self.http.base_url}/replicas/console/"

    @property
    def permission(self) -> dict[str, Any]:
        """Body of a call about the permission of the page's account."""
        return {"account": self.account, "replica": ALPHA_ID, "contract": ALPHA_CONTRACT, "permission": READ_REPLICAS}


@pytest.fixture(scope="module")
async def console(
    cluster: AlphaCluster,
    servers: Servers,
    admin: Client,
    typescript: TypeScript,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Console]:
    settings = await load_console(cluster, servers, admin)
    typescript.bundle_page()
    command = typescript.program("console")
    async with (
        running(command, variables(settings, free_port())) as http,
        browser_page(tmp_path_factory.mktemp("browser")) as page,
    ):
        account = await sign_in(page, f"{http.base_url}/replicas/console/", servers.jazz.url)
        yield Console(settings.agent_secret.get_secret_value(), http, page, account)


async def load_console(cluster: AlphaCluster, servers: Servers, admin: Client) -> ReplicaSettings:
    """Load the console's image, and return the settings of its process."""
    made: list[Credentials] = []
    real = Credentials.generate

    def record() -> Credentials:
        made.append(real())
        return made[-1]

    await bootstrap.load_system(cluster.alpha, await push_system(servers))
    await servers.push("reside/contracts/console.v1", **yaml.safe_load((CONTRACT / "contract.yaml").read_text()))
    await servers.push("reside/examples/console:v1", **yaml.safe_load((CONSOLE / "replica.yaml").read_text()))
    with patch.object(Credentials, "generate", record):
        await admin.load("reside/examples/console:v1")
    await cluster.has_status("console", "running")
    console = await cluster.replica("console")
    (account,) = (each for each in made if each.account_id == console.account)
    return ReplicaSettings(**servers.members(account, console.control_block, "console"))


async def test_a_new_replica_appears_in_the_page_within_a_second(
    cluster: AlphaCluster, servers: Servers, admin: Client, console: Console, tmp_path: Path
) -> None:
    page = console.page
    await admin.call("grant-permission", console.permission)
    await shows(page, SYSTEM)
    await page.run(TIMES)
    delays: dict[str, int] = {}
    for name in NEW:
        await servers.push(f"examples/{name}:v1", type="replica", info={"name": name} | INFO)
        await admin.load(f"examples/{name}:v1")
        await shows(page, [*SYSTEM, *delays, name])
        delays[name] = await page.run(f"times.{name}") - await written_at(cluster, name)
    assert min(delays.values()) < 1000, delays  # of several, because the machine may be busy
    await cluster.has_status(NEW[-1], "running")
    await until_text(page, "tr:last-child .badge", "running")
    await page.screenshot(tmp_path / "dark.png", width=1100, height=WIDE, dark=True)
    pictures = Path(os.environ.get("RESIDE_PICTURES") or tmp_path)
    await page.screenshot(pictures / "console.png", width=1100, height=WIDE)
    await page.screenshot(pictures / "console-phone.png", width=390, height=700, dark=True)
    assert await page.run("document.documentElement.scrollWidth") <= 390  # nothing is wider than a phone
    assert page.errors == []


async def test_the_page_returns_to_jazz_and_keeps_its_account(servers: Servers, console: Console) -> None:
    servers.jazz.kill()
    await until_text(console.page, "#connection", "connecting…")
    servers.jazz.start()
    await until_text(console.page, "#connection", "live")
    await console.page.open(console.url)
    await shows(console.page, [*SYSTEM, *NEW])
    assert not [error for error in console.page.errors if "ERR_CONNECTION_REFUSED" not in error]
    console.page.errors.clear()


async def test_a_revoked_account_sees_nothing_until_it_may_read_again(admin: Client, console: Console) -> None:
    await admin.call("revoke-permission", console.permission)
    await until_text(console.page, "#waiting:not([hidden]) #grant", grant_command(console.account))
    assert await console.page.run("document.getElementById('rows').childElementCount") == 0
    await admin.call("grant-permission", console.permission)
    await shows(console.page, [*SYSTEM, *NEW])


async def test_an_account_can_be_opened_again_with_its_key(servers: Servers, console: Console) -> None:
    page = console.page
    key = await page.run("JSON.parse(sessionStorage.getItem('reside-key')).key")
    await page.leave("document.getElementById('sign-out').click()")
    await until_text(page, "#sign-in:not([hidden]) h2", "Open the cluster")
    assert await page.run("sessionStorage.length") == 0
    await submit(page, servers.jazz.url, "sealerSecret_zWrong")
    await until_text(page, "#error", "This is not the key of an account.")
    await submit(page, servers.jazz.url, key)
    await shows(page, [*SYSTEM, *NEW])
    assert page.errors == []


async def test_another_domain_of_the_cluster_reaches_the_page_at_once(cluster: AlphaCluster, console: Console) -> None:
    async def look() -> tuple[Any, bool]:
        answer = await console.http.get("/replicas/console/settings.json")
        policy = answer.headers["content-security-policy"]
        return answer.json()["jazz"], "connect-src 'self' data: wss://cluster.example.com;" in policy

    await cluster.change_settings(domain="cluster.example.com", cluster_issuer="ca")
    await eventually("the address of Jazz", look, lambda seen: seen == ("wss://cluster.example.com", True))


async def test_nobody_gets_the_key_of_the_replica(console: Console) -> None:
    for name in ("", "page.css", "page.js", "settings.json"):
        answer = await console.http.get(f"/replicas/console/{name}")
        assert answer.status_code == 200
        assert console.secret not in answer.text
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_the_bundle_is_reproducible(typescript: TypeScript) -> None:
    assert typescript.bundle_page() == typescript.bundle_page()


async def shows(page: Page, names: list[str]) -> None:
    """Wait until the page shows these replicas, in this order."""
    visible = "!document.getElementById('replicas').hidden"
    found = "[...document.querySelectorAll('#rows .name')].map((each) => each.firstChild.textContent)"
    look = f"{visible} ? {found} : []"
    await eventually(f"{names} in the page", lambda: page.run(look), lambda seen: seen == names, within=WITHIN_S)


async def sign_in(page: Page, url: str, jazz: str) -> str:
    """Open the page with a new account; return the account once it waits for its permission."""
    await page.open(url)
    await until_text(page, "#sign-in:not([hidden]) h2", "Open the cluster")
    await submit(page, jazz)
    await until_text(page, "#waiting:not([hidden]) h2", "Waiting for permission")
    await until_text(page, "#connection", "live")
    return str(await page.run("document.getElementById('grant').textContent.split(' ')[3]"))


async def submit(page: Page, jazz: str, key: str = "") -> None:
    """Submit the form with an address of Jazz and a key."""
    for field, value in (("jazz", jazz), ("key", key)):
        await page.run(f"document.getElementById({json.dumps(field)}).value = {json.dumps(value)}")
    await page.run("document.querySelector('form button').click()")


def grant_command(account: str) -> str:
    return f"reside permission grant {account} alpha {READ_REPLICAS}"


async def until_text(page: Page, selector: str, text: str) -> None:
    """Wait until an element has this text."""
    look = f"document.querySelector({json.dumps(selector)})?.textContent"

    async def seen() -> Any:
        return [await page.run(look), await page.run("document.getElementById('error').textContent"), page.errors]

    await eventually(f"{selector} to be {text!r}", seen, lambda found: found[0] == text, within=WITHIN_S)


async def written_at(cluster: AlphaCluster, name: str) -> int:
    """Return when Alpha wrote a replica, in ms since 1970."""
    (found,) = [r for r in await records.all_replicas(cluster.alpha.data) if r.value.name == name]
    assert found.map.created_at is not None
    return found.map.created_at
