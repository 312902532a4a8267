"""Environments and scenarios as EnvScaler's models write them, and the same with one thing wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROGRAM = '''\
from typing import Dict, List, Optional, TypedDict, Any, Union
import re

class ProductInfo(TypedDict):
    product_id: str
    name: str
    price: float
    stock_quantity: int

class OrderInfo(TypedDict):
    order_id: str
    customer_id: str
    status: str  # "pending" or "fulfilled"
    order_items: List[str]

class EcommerceOrderSystem:
    def __init__(self):
        """
        The environment for e-commerce order management.
        """

        # Products: {product_id: ProductInfo}
        self.products: Dict[str, ProductInfo] = {}

        # Orders: {order_id: OrderInfo}
        self.orders: Dict[str, OrderInfo] = {}

        # Constraints reminder:
        # - Stock quantity cannot drop below 0

        self.current_user: dict = {}

    def get_product_by_id(self, product_id: str) -> dict:
        """
        Retrieve a product by its ID.

        Args:
            product_id (str): The unique identifier of the product.

        Returns:
            dict: {"success": True, "data": ProductInfo} or {"success": False, "error": str}

        Constraints:
            - The product must exist.
        """
        # get
        if product_id not in self.products:
            return {"success": False, "error": "Product not found"}
        return {"success": True, "data": self.products[product_id]}

    def list_orders(self, status: Optional[str] = None) -> dict:
        """List orders, optionally by status."""
        # list
        result = [o for o in self.orders.values() if status is None or o["status"] == status]
        return {"success": True, "data": result}

    def update_stock(self, product_id: str, quantity: int) -> dict:
        """Set the stock quantity of a product."""
        # stock
        if product_id not in self.products:
            return {"success": False, "error": "Product not found"}
        if quantity < 0:
            return {"success": False, "error": "Stock quantity cannot drop below 0"}
        self.products[product_id]["stock_quantity"] = quantity
        return {"success": True, "message": "Stock updated"}

    def fulfill_order(self, order_id: str) -> dict:
        """Mark a pending order as fulfilled."""
        # fulfill
        order = self.orders.get(order_id)
        if order is None or order["status"] != "pending":
            return {"success": False, "error": "Order is not pending"}
        order["status"] = "fulfilled"
        return {"success": True, "message": f"Order {order_id} fulfilled"}

    def rename_product(self, product_id: str, name: str) -> dict:
        """Rename a product."""
        # rename
        if product_id not in self.products or not re.search(r"\\w", name):
            return {"success": False, "error": "Product not found or name is empty"}
        self.products[product_id]["name"] = name
        return {"success": True, "message": "Renamed"}
'''
CONFIG: dict[str, Any] = {
    "products": {
        "P-100": {"product_id": "P-100", "name": "Floor lamp", "price": 39.9, "stock_quantity": 12},
        "P-200": {"product_id": "P-200", "name": "Vase", "price": 15, "stock_quantity": 3},
    },
    "orders": {
        "58291": {"order_id": "58291", "customer_id": "C-7", "status": "pending", "order_items": ["P-100"]},
        "58292": {"order_id": "58292", "customer_id": "C-8", "status": "fulfilled", "order_items": ["P-200"]},
        "58293": {"order_id": "58293", "customer_id": "C-7", "status": "pending", "order_items": ["P-200"]},
    },
}
TASK = "Set the stock quantity of the product P-100 to 11, and mark the order 58291 as fulfilled."
ITEMS = [
    {
        "check_item": "Has set the stock quantity of P-100 to 11.",
        "check_func": "def check_func(final_state):\n"
        '    return final_state["products"]["P-100"]["stock_quantity"] == 11\n',
    },
    {
        "check_item": "Has marked the order 58291 as fulfilled.",
        "check_func": "def check_func(final_state):\n"
        '    if initial_state["orders"]["58291"]["status"] != "pending":\n        return False\n'
        '    return final_state["orders"]["58291"]["status"] == "fulfilled"\n',
    },
]
SOLUTION = [
    {"tool": "update_stock", "arguments": {"product_id": "P-100", "quantity": 11}},
    {"tool": "fulfill_order", "arguments": {"order_id": "58291"}},
]


def make_environment(env_id: str = "env_1", old: str = "", new: str = "", **fields: Any) -> dict[str, Any]:
    """Return an environment of the published form; `old` in its program is replaced by `new`."""
    assert old in PROGRAM
    return {
        "env_id": env_id,
        "environment_summary": "E-commerce order management system",
        "environment_introduction": "A stateful backend of a shop with products and orders.",
        "state_space_definition": [
            {"entity": "Product", "attributes": "product_id, name, price, stock_quantity", "description": "A product."}
        ],
        "constraints_rules": ["Stock quantity cannot drop below 0.", "Only pending orders can be fulfilled."],
        "operation_list": [],
        "env_class_name": "EcommerceOrderSystem",
        "env_class_code": PROGRAM.replace(old, new, 1) if old else PROGRAM,
        "env_class_def": "",
        "env_structure": {},
        "tools": [],
    } | fields


def make_scenario(env_id: str = "env_1", task_id: str = "env_1-task_1", **fields: Any) -> dict[str, Any]:
    """Return a scenario of the published form, with a solution."""
    return {
        "env_id": env_id,
        "env_class_name": "EcommerceOrderSystem",
        "task_id": task_id,
        "init_config": CONFIG,
        "task": TASK,
        "checklist": [item["check_item"] for item in ITEMS],
        "checklist_with_func": ITEMS,
        "solution": SOLUTION,
    } | fields


def make_check(source: str, item: str = "Has done it.") -> list[dict[str, str]]:
    return [{"check_item": item, "check_func": source}]


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path
