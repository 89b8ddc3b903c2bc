"""What a follower's record says of the consumer's own database: where the checkpoint is, and what is not its doing.

SQL for the columns of ``input.records``.
"""

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.spark.input.records import FOLLOWER

__all__ = ["checkpoint", "not_the_consumers"]

_OURS = f"side = '{FOLLOWER}' AND database = '{CHECKPOINT_DATABASE}'"
_TABLES = "checkpoint|ledger|conflicts|offsets"
# What makes these tables, and makes an old ledger anew.
_MAKES_THEM = f"""
    coalesce(forall(affects, a -> a.action = 'CreateDatabase'
        OR (a.action = 'CreateTable' AND a.uri RLIKE '/({_TABLES})$')
        OR (a.action = 'AlterTable' AND a.uri LIKE '%/ledger'
            AND query LIKE 'ALTER TABLE `%`.`ledger` MODIFY state %')), true)
"""


def _cell(image: str, column: str, tag: str) -> str:
    return f"get_json_object(get({image}, int(array_position(columns, '{column}')) - 1), '$.{tag}')"


def _is_of(image: str, resource: str) -> str:
    quoted = resource.replace("\\", "\\\\").replace("'", "\\'")
    return f"{_cell(image, 'resource', 'String')} = '{quoted}'"


def checkpoint(resource: str) -> str:
    """The leader sequences before (``since``) and after (``upto``) a record of the checkpoint table, and the leader
    transaction that it names, ``claim``; NULL for any other record.

    ``claim`` is empty where it names none, and NULL where the table has no place for it.
    """
    since = _cell("r.before", "sequence", "SignedInteger")
    upto = _cell("r.after", "sequence", "SignedInteger")
    claim = (
        f"IF(array_contains(columns, 'leader_gtid'), coalesce({_cell('r.after', 'leader_gtid', 'String')}, ''), NULL)"
    )
    # The first row is written before anything is applied, and names nothing.
    claim = f"IF(r.before IS NULL AND {upto} = '-1', NULL, {claim})"
    ours = f"filter(rows, r -> {_is_of('r.after', resource)})"
    told = f"named_struct('upto', bigint({upto}), 'since', coalesce(bigint({since}), -1), 'claim', {claim})"
    all_ = f"transform({ours}, r -> {told})"
    return f"""
        CASE WHEN {_OURS} AND table = 'checkpoint' AND size(rows) > 0 THEN named_struct(
            'since', array_min(transform({all_}, p -> p.since)),
            'upto', array_max({all_}).upto, 'claim', array_max({all_}).claim) END
    """


def not_the_consumers(resource: str) -> str:
    """The table, by its full name, that a record touches as the consumer of the leader ``resource`` never does but with
    its checkpoint; NULL for any other record. What other consumers note of their leaders is their business.
    """
    notes_an_intent = f"forall(rows, r -> r.before IS NULL AND {_cell('r.after', 'state', 'Enum')} = 'intent')"
    begins = f"forall(rows, r -> r.before IS NULL AND {_cell('r.after', 'sequence', 'SignedInteger')} = '-1')"
    return f"""
        CASE
            WHEN NOT ({_OURS}) THEN NULL
            WHEN query IS NOT NULL THEN IF({_MAKES_THEM}, NULL,
                concat_ws('.', database, url_decode(get(split(affects[0].uri, '/'), 4))))
            WHEN table = 'ledger' AND coalesce({notes_an_intent}, false) THEN NULL
            WHEN table = 'checkpoint' AND coalesce({begins}, false) THEN NULL
            WHEN NOT exists(rows, r -> coalesce({_is_of("coalesce(r.after, r.before)", resource)}, true)) THEN NULL
            ELSE concat_ws('.', database, table)
        END
    """
