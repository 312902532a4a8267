"""Corpora, walks over them, and questions"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_table(
        "corpus",
        *_list_texts("name", "source", "language", "pages_sha256", "index_sha256"),
        sa.Column("n_pages", sa.Integer(), nullable=False),
        sa.Column("n_left_out", sa.Integer(), nullable=False),
    )
    op.create_index("ix_corpus_name", "corpus", ["name"])
    _create_table(
        "walk",
        *_list_texts("parent", "corpus", "name", "seed", "model"),
        sa.Column("n_calls", sa.Integer(), nullable=False),
        sa.Column("n_pages", sa.Integer(), nullable=False),
        sa.Column("n_facts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["corpus.id"], name="fk_walk_parent"),
    )
    _create_table(
        "question",
        *_list_texts("parent", "walk", "corpus", "name", "environment", "answer_type", "license", "model"),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("n_clues", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["walk"], ["walk.id"], name="fk_question_walk"),
    )
    _create_table(
        "question_certificate",
        *_list_texts("parent", "name"),
        *_list_numbers("entry_rank", "attempts", "solved"),
        sa.Column("mean_turns", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["parent"], ["question.id"], name="fk_question_certificate_parent"),
    )
    _create_table(
        "question_rejection",
        *_list_texts("parent", "walk", "corpus", "name", "step", "reason", "detail"),
        sa.Column("round", sa.Integer(), nullable=False),
        *_list_numbers("entry_rank", "attempts", "solved"),
        sa.Column("mean_turns", sa.Float(), nullable=True),
    )
    for table, columns in (
        ("walk", ("parent", "name")),
        ("question", ("walk", "corpus", "name")),
        ("question_certificate", ("parent",)),
        ("question_rejection", ("parent", "walk", "name", "reason")),
    ):
        for column in columns:
            op.create_index(f"ix_{table}_{column}", table, [column])


def _list_texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.String(), nullable=False) for name in names]


def _list_numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer(), nullable=True) for name in names]


def _create_table(table: str, *columns: sa.schema.SchemaItem) -> None:
    op.create_table(
        table,
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("added_at", sa.String(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("seq", name=f"pk_{table}"),
        sa.UniqueConstraint("id", name=f"uq_{table}_id"),
    )
