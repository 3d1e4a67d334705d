"""What has to stand before the first action is scheduled?"""

from __future__ import annotations

import asyncio
import base64
import secrets
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from demo.database import database
from demo.mail import mail_server
from demo.program import Program
from demo.webhooks import webhook_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from demo.delivery import Delivery


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A database, two receivers and what has reached them, and `postdate` with the settings that lead there."""

    folder: Path
    database_url: str
    webhook_url: str
    deliveries: asyncio.Queue[Delivery]
    program: Program

    @property
    def log(self) -> Path:
        """Where `postdate serve` writes its log."""
        return self.folder / "serve.log"


@asynccontextmanager
async def stage(*, postgres: bool) -> AsyncIterator[Stage]:
    """Set everything up; take it away again when the block is left, whatever happens in it."""
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    deliveries: asyncio.Queue[Delivery] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="postdate-demo-")))
        database_url = stack.enter_context(database(folder, postgres=postgres))
        smtp_url = await stack.enter_async_context(mail_server(deliveries.put_nowait))
        webhook_url = await stack.enter_async_context(webhook_server(secret, deliveries.put_nowait))
        program = Program(
            settings={
                "POSTDATE_DATABASE_URL": database_url,
                "POSTDATE_SMTP_URL": smtp_url,
                "POSTDATE_SMTP_FROM": "Demo Shop <shop@example.com>",
                "POSTDATE_WEBHOOK_SECRET": secret,
                "POSTDATE_WEBHOOK_ALLOW_HTTP": "1",
                "POSTDATE_EGRESS_ALLOW": webhook_url.removeprefix("http://"),  # else only public addresses
            }
        )
        yield Stage(
            folder=folder, database_url=database_url, webhook_url=webhook_url, deliveries=deliveries, program=program
        )
