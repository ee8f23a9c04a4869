"""A shop: goods on a shelf, a cart, and orders with an address."""

from __future__ import annotations

import random
import sqlite3

from sandbox.sites.app import (
    App,
    Form,
    Invalid,
    NotFound,
    Redirect,
    choice,
    entry,
    form,
    required,
    text,
)

COLOURS = ("red", "green", "blue", "black", "white")
GOODS = ("mug", "lamp", "scarf", "notebook", "backpack", "umbrella", "bottle", "cushion")
DELIVERY = ("post", "courier", "pick up")


def _fill(database: sqlite3.Connection, rng: random.Random) -> None:
    for name in rng.sample([f"{colour} {goods}" for colour in COLOURS for goods in GOODS], 8):
        database.execute(
            "insert into product (name, price, stock) values (?, ?, ?)",
            (name, rng.randrange(3, 60), rng.randrange(5, 40)),
        )


APP = App(
    name="shop",
    title="Corner Shop",
    schema="""create table product (
        id integer primary key, name text not null, price integer not null, stock integer not null);
    create table cart (product integer primary key references product, amount integer not null);
    create table placed (
        id integer primary key, name text not null, address text not null, delivery text not null);
    create table line (placed integer not null, product integer not null, amount integer not null);""",
    fill=_fill,
    menu=(("Goods", "list"), ("Cart", "cart")),
)


def _one(database: sqlite3.Connection, id: str) -> sqlite3.Row:
    row = database.execute("select * from product where id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(id)
    found: sqlite3.Row = row
    return found


@APP.page("GET", "/(list)?")
def goods(database: sqlite3.Connection, data: Form) -> str:
    lines = "".join(
        f"<tr><td><a href='product/{row['id']}'>{text(row['name'])}</a></td>"
        f"<td>{row['price']} €</td><td>{row['stock']} left</td></tr>"
        for row in database.execute("select * from product order by name")
    )
    return f"<h1>Goods</h1><table><tr><th>Name</th><th>Price</th><th>Stock</th></tr>{lines}</table>"


@APP.page("GET", "/product/<id>")
def product(database: sqlite3.Connection, data: Form, id: str) -> str:
    row = _one(database, id)
    return f"<h1>{text(row['name'])}</h1><p>{row['price']} €, {row['stock']} left</p>" + form(
        f"product/{id}", entry("Amount", "amount", 1), "Put into cart"
    )


@APP.page("POST", "/product/<id>")
def put(database: sqlite3.Connection, data: Form, id: str) -> str:
    row, amount = _one(database, id), required(data, "amount", "Amount")
    if not amount.isdigit() or not 1 <= int(amount) <= row["stock"]:
        raise Invalid(f"Amount must be a number from 1 to {row['stock']}.")
    database.execute(
        "insert into cart values (?, ?) on conflict (product) do update set amount = amount + ?",
        (id, int(amount), int(amount)),
    )
    raise Redirect("/cart")


@APP.page("GET", "/cart")
def cart(database: sqlite3.Connection, data: Form) -> str:
    rows = database.execute(
        "select name, price, amount from cart join product on product.id = cart.product"
    ).fetchall()
    if not rows:
        return "<h1>Cart</h1><p>Your cart is empty.</p>"
    lines = "".join(
        f"<tr><td>{text(row['name'])}</td><td>{row['amount']}</td>"
        f"<td>{row['amount'] * row['price']} €</td></tr>"
        for row in rows
    )
    inner = (
        entry("Full name", "name")
        + entry("Address", "address")
        + choice("Delivery", "delivery", DELIVERY)
    )
    return (
        f"<h1>Cart</h1><table><tr><th>Name</th><th>Amount</th><th>Price</th></tr>{lines}</table>"
        + form("cart/clear", "", "Empty cart")
        + "<h2>Order</h2>"
        + form("cart", inner, "Place order")
    )


@APP.page("POST", "/cart/clear")
def clear(database: sqlite3.Connection, data: Form) -> str:
    database.execute("delete from cart")
    raise Redirect("/cart")


@APP.page("POST", "/cart")
def order(database: sqlite3.Connection, data: Form) -> str:
    rows = database.execute("select * from cart").fetchall()
    if not rows:
        raise Invalid("Your cart is empty.")
    placed = database.execute(
        "insert into placed (name, address, delivery) values (?, ?, ?)",
        (
            required(data, "name", "Full name"), required(data, "address", "Address"),
            required(data, "delivery", "Delivery"),
        ),
    ).lastrowid  # fmt: skip
    for row in rows:
        database.execute(
            "insert into line values (?, ?, ?)", (placed, row["product"], row["amount"])
        )
        database.execute(
            "update product set stock = stock - ? where id = ?", (row["amount"], row["product"])
        )
    database.execute("delete from cart")
    raise Redirect("/list")
