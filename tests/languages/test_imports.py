"""Files that a file imports, by its import statements and the paths of a tree."""

from __future__ import annotations

import pytest

from languages.imports import ImportIndex, list_importer_words

CASES = {
    "python": (
        ["shop/cart.py", "shop/sums.py", "shop/__init__.py", "shop/deep/x.py", "src/tools/fmt.py", "far/json.py"],
        "shop/sums.py",
        "import os, json\nfrom . import cart\nfrom .deep import (\n    x as y,  # z\n)\nfrom tools.fmt import pretty\n",
        ["shop/cart.py", "shop/deep/x.py", "src/tools/fmt.py"],
    ),
    "a package": (["shop/__init__.py", "web/bills.py"], "web/bills.py", "import shop\n", ["shop/__init__.py"]),
    "above": (["a/b.py", "a/c/d.py"], "a/c/d.py", "from ..b import x\nfrom .... import y\n", ["a/b.py"]),
    "javascript": (
        ["src/cart.ts", "src/lib/index.js", "src/app.js", "src/ui/Button.tsx", "far/react.js"],
        "src/app.js",
        "import {\n a\n} from './cart'\nconst l = require('./lib');\nimport React from 'react'\nimport '@/ui/Button'\n",
        ["src/cart.ts", "src/ui/Button.tsx", "src/lib/index.js"],
    ),
    "go": (
        ["cart/cart.go", "cart/items.go", "main.go", "far/fmt/x.go"],
        "main.go",
        'import (\n\t"fmt"\n\tc "github.com/ada/shop/cart"\n)\n',
        ["cart/cart.go", "cart/items.go"],
    ),
    "java": (
        ["src/main/java/com/acme/Cart.java", "src/main/java/com/acme/Item.java", "src/main/java/com/acme/List.java"],
        "src/main/java/com/acme/Cart.java",
        "package com.acme;\nimport java.util.List;\nimport static com.acme.Item.make;\n",
        ["src/main/java/com/acme/Item.java"],
    ),
    "rust": (
        ["src/lib.rs", "src/cart.rs", "src/cart/item.rs"],
        "src/lib.rs",
        "pub mod cart;\nuse crate::cart::{item::Item, Cart};\nuse std::fmt;\n",
        ["src/cart.rs", "src/cart/item.rs"],
    ),
    "c": (
        ["include/shop/cart.h", "src/cart.c", "src/main.c", "src/util.h"],
        "src/main.c",
        '#include <stdio.h>\n#include "shop/cart.h"\n  #include "util.h"\n',
        ["include/shop/cart.h", "src/util.h", "src/cart.c"],
    ),
    "ruby": (
        ["lib/shop/cart.rb", "lib/shop/item.rb", "lib/shop.rb"],
        "lib/shop.rb",
        "require 'json'\nrequire 'shop/cart'\nrequire_relative 'shop/item'\n",
        ["lib/shop/cart.rb", "lib/shop/item.rb"],
    ),
    "elixir": (
        ["lib/my_app/order_items.ex", "lib/my_app/cart.ex"],
        "lib/my_app/cart.ex",
        "  alias MyApp.{OrderItems, Unknown}\n",
        ["lib/my_app/order_items.ex"],
    ),
    "php": (["src/Http/Cart.php", "src/x.php"], "src/x.php", "use Acme\\Http\\Cart;\n", ["src/Http/Cart.php"]),
    "perl": (["lib/Shop/Cart.pm", "bin/x.pl"], "bin/x.pl", "use strict;\nuse Shop::Cart;\n", ["lib/Shop/Cart.pm"]),
    "haskell": (
        ["src/Shop/Cart.hs", "app/Main.hs"],
        "app/Main.hs",
        "import qualified Shop.Cart as C\nimport Data.List\n",
        ["src/Shop/Cart.hs"],
    ),
    "lua": (["src/cart.lua", "src/main.lua"], "src/main.lua", 'local c = require("cart")\n', ["src/cart.lua"]),
    "another language": (["cart.py", "x.rb"], "x.rb", "require 'cart'\n", []),
}


@pytest.mark.parametrize(("paths", "path", "text", "imported"), CASES.values(), ids=CASES)
def test_imports_are_files_of_the_tree(paths: list[str], path: str, text: str, imported: list[str]) -> None:
    assert ImportIndex(paths).find_imported(path, text) == imported


def test_the_nearest_of_several_files_of_a_name_is_imported() -> None:
    index = ImportIndex(["a/shop/cart.py", "b/shop/cart.py", "b/main.py"])
    assert index.find_imported("b/main.py", "import shop.cart\n") == ["b/shop/cart.py"]


def test_importers_of_a_file_contain_a_word_of_its_name() -> None:
    assert {"shop"} < list_importer_words("shop/__init__.py")
    assert list_importer_words("lib/my_app/order_items.ex") == {"order_items", "orderitems"}
    assert list_importer_words("cart/items.go") == {"cart", "items"}
