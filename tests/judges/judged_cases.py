"""An item of the beauty room and a trajectory that answers it, for judges that ask models."""

from harness_cli.records.chat import ChatReply
from harness_cli.records.item import Expect, Item
from harness_cli.records.request import Comment, Request, Room
from harness_cli.records.trajectory import Step, ToolCall, ToolResult, Trajectory


def make_item(world, **fields):
    room = Room(id="room-beauty", products=world.room("room-beauty").products, current_link=1)
    request = Request(comments=(Comment(viewer="v1", text="How much is #1?"),), room=room)
    expect = fields.pop("expect", Expect(answers=("price",)))
    return Item(id="i-1", request=request, expect=expect, **fields)


PRICE = ("get_product_info_by_link_id", {"link_id": 1}, {"price": 89})


def make_trajectory(reply, calls=(PRICE,), **fields):
    """`calls` holds (name, arguments, result)."""
    made = tuple(
        ToolCall(
            id=f"c{n}",
            name=name,
            arguments_raw="{}",
            arguments=arguments,
            result=ToolResult(ok=True, content=str(result), structured=result),
        )
        for n, (name, arguments, result) in enumerate(calls)
    )
    step = Step(index=0, messages=(), reply=ChatReply(content=reply), calls=made)
    return Trajectory(request_id="r", steps=(step,), reply=reply, **fields)
