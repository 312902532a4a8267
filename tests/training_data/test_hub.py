"""Names of licences on the Hugging Face hub, of SPDX expressions."""

from __future__ import annotations

import pytest

from training_data.hub import name_licenses


@pytest.mark.parametrize(
    ("expressions", "names"),
    [
        (["MIT"], "mit"),
        (["Apache-2.0 AND MIT"], ["apache-2.0", "mit"]),
        (["mit and apache-2.0", "MIT"], ["apache-2.0", "mit"]),
        (["(MIT OR Apache-2.0) AND BSD-3-Clause", "ISC"], ["apache-2.0", "bsd-3-clause", "isc", "mit"]),
        (["GPL-3.0-only", "GPL-3.0-or-later", "GPL-3.0+"], "gpl-3.0"),
        (["MIT AND LicenseRef-Own"], ["mit", "other"]),
        (["GPL-2.0-only WITH Classpath-exception-2.0"], "other"),
        (["NOASSERTION", "", "MIT/Apache-2.0", "Apache-2.0 AND"], "other"),
    ],
)
def test_every_licence_of_an_expression_is_named(expressions: list[str], names: str | list[str]) -> None:
    assert name_licenses(expressions) == names
