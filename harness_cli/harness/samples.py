"""Requests that between them reach every field a prompt block may read, for `harness check`."""

from harness_cli.records.catalogue import Catalogue, LiveRoom, Product
from harness_cli.records.request import Comment, FaqEntry, Request, Room, RoomEvent

WORLD = Catalogue(
    snapshot="2026-01-01",
    products=(
        Product(
            id="p-1", name="Cup", zh_name="杯子", category="kitchen", price=10.0, list_price=12.0
        ),
    ),
    rooms=(LiveRoom(id="r-1", name="Room", host="Host", products=("p-1",)),),
)
_COMMENTS = (
    Comment(viewer="v1", text="How much is #1?", at=1.0),
    Comment(viewer="v2", text="有货吗", at=2.0),
)
_FULL = Request(
    channel="private",
    comments=_COMMENTS,
    anchor=("Welcome.", "Link 1 is a cup."),
    room=Room(id="r-1", current_link=1, products=("p-1", "p-2")),
    faq=(FaqEntry(id="f-1", question="Shipping?", answer="Two days.", product="p-1"),),
    history=(
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
    ),
    events=(RoomEvent(viewer="v3", kind="order", product="p-1", at=3.0),),
    mode="multi",
)
REQUESTS = (
    Request(),
    Request(comments=_COMMENTS[:1], room=Room(id="r-1", products=("p-1",))),
    Request(comments=_COMMENTS, mode="multi", room=Room(id="unknown", status="ended")),
    Request(channel="private", comments=_COMMENTS[:1], room=Room(id="r-1", status="preview")),
    _FULL,
)
