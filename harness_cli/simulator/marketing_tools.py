"""What the marketing service lists: names, descriptions and schemas of its tools."""

from typing import Any

_LINK = {
    "type": "integer",
    "minimum": 1,
    "maximum": 200,
    "description": "The link number in this room, as viewers say it.",
}
_QUANTITY = {
    "type": "integer",
    "minimum": 1,
    "maximum": 99,
    "description": "How many pieces; 1 when nothing is said.",
}
_MEMBER = {
    "type": "boolean",
    "description": "True only when the viewer says that they are a member. 是否会员。",
}
_ITEMS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 10,
    "description": "Several links in one order, instead of `link_id`.",
    "items": {
        "type": "object",
        "properties": {"link_id": _LINK, "quantity": _QUANTITY},
        "required": ["link_id"],
        "additionalProperties": False,
    },
}
_SUMMARY = {
    "summary": {"type": "string", "description": "The same in words a host can say."},
    "zh_summary": {"type": "string"},
}
_READ_ONLY = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}


def _listed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties, **_SUMMARY},
        "required": ["summary", "zh_summary"],
    }


_PRICED = _listed(
    {
        "name": {"type": "string"},
        "zh_name": {"type": "string"},
        "items": {"type": "array", "items": {"type": "object"}},
        "original_price": {"type": "number", "description": "Before offers, in yuan."},
        "final_price": {"type": "number", "description": "What is paid, in yuan."},
        "saving": {"type": "number"},
        "applied": {"type": "array", "items": {"type": "object"}},
        "gifts": {"type": "array", "items": {"type": "string"}},
        "free_shipping": {"type": "boolean"},
        "member": {"type": "boolean"},
        "member_price": {"type": "number", "description": "For members, where it is lower."},
        "next_offer": {"type": "object", "description": "The next threshold and what is missing."},
    }
)

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "get_campaign_conditions",
        "title": "Campaigns of the room",
        "description": (
            "The campaigns that run in this live room: full reductions, percent offers, coupons, "
            "gifts, free shipping; from how much they apply, until when, for which links, and what "
            "has ended. Use it when viewers ask for discounts, deals, coupons, vouchers, full "
            "reductions or activities. "
            "查询直播间优惠活动：满减、折扣、优惠券、赠品、包邮及使用条件。"
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "link_id": {**_LINK, "description": "Only what applies to this link."},
                "kind": {
                    "type": "string",
                    "enum": [
                        "full_reduction",
                        "percent",
                        "coupon",
                        "gift",
                        "shipping",
                        "member",
                    ],
                    "description": "Only offers of this kind, when the viewer asks for one.",
                },
            },
            "additionalProperties": False,
        },
        "outputSchema": _listed(
            {
                "count": {"type": "integer"},
                "campaigns": {"type": "array", "items": {"type": "object"}},
                "ended": {"type": "array", "items": {"type": "object"}},
                "upcoming": {"type": "array", "items": {"type": "object"}},
            }
        ),
        "annotations": _READ_ONLY,
    },
    {
        "name": "get_buyer_benefits",
        "title": "Benefits of a buyer",
        "description": (
            "What members of the shop get and what else a buyer personally holds: member prices, "
            "member coupons, member gifts. Use it when viewers ask what members get, whether "
            "joining is worth it, or say that they are members. 查询会员权益、会员价、会员礼。"
        ),
        "inputSchema": {
            "type": "object",
            "properties": {"link_id": {**_LINK, "description": "Only what applies to this link."}},
            "additionalProperties": False,
        },
        "outputSchema": _listed(
            {
                "count": {"type": "integer"},
                "member_benefits": {"type": "array", "items": {"type": "object"}},
                "coupons": {"type": "array", "items": {"type": "object"}},
                "free_shipping": {"type": "array", "items": {"type": "object"}},
            }
        ),
        "annotations": _READ_ONLY,
    },
    {
        "name": "calculate_promotion",
        "title": "Price with given offers",
        "description": (
            "What an order costs with the offers that are named, or with the campaigns that apply "
            "by themselves when none is named. Use it for one certain coupon or an ordinary order. "
            "按指定优惠计算价格。"
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "link_id": _LINK,
                "quantity": _QUANTITY,
                "items": _ITEMS,
                "offers": {
                    "type": "array",
                    "maxItems": 6,
                    "items": {"type": "string", "maxLength": 120},
                    "description": "Names of campaigns or coupons, as another tool lists them.",
                },
                "member": _MEMBER,
            },
            "additionalProperties": False,
        },
        "outputSchema": _PRICED,
        "annotations": _READ_ONLY,
    },
    {
        "name": "calculate_optimal_promotion",
        "title": "Lowest final price",
        "description": (
            "The final price of one link or of several after the best combination of all offers: "
            "what the viewer pays at checkout, coupons included. Use it for the final price, the "
            "price after coupons, or the price of two pieces. 计算到手价、券后价、最优组合。"
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "link_id": _LINK,
                "quantity": _QUANTITY,
                "items": _ITEMS,
                "member": _MEMBER,
            },
            "additionalProperties": False,
        },
        "outputSchema": _PRICED,
        "annotations": _READ_ONLY,
    },
)
