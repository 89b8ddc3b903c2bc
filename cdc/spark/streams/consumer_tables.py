"""SQL expressions over a follower's records (columns of ``input.records``) that recognize changes of the consumer's
own tables: the checkpoint's position, and changes that the consumer never makes.
"""

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.spark.input.records import FOLLOWER

__all__ = ["changed_by_others", "checkpoint"]

_IN_OWN_DATABASE = f"side = '{FOLLOWER}' AND database = '{CHECKPOINT_DATABASE}'"
# An earlier version created ``rewinds``, which a topic may still contain.
_TABLES = "checkpoint|ledger|conflicts|copies|offsets|rewinds|seeds"
# The statements by which the consumer creates its tables, and upgrades the ledger of an earlier version.
_CREATES_OWN_TABLES = f"""
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
    """SQL for a struct with the checkpoint of the leader ``resource`` in a record of the checkpoint table; NULL for any
    other record.

    Its fields: the leader sequences before (``since``) and after (``upto``) the change, and ``claim``, the leader
    transaction that the row names. ``claim`` is empty if it names none, and NULL if the table has no such column.
    """
    since = _cell("r.before", "sequence", "SignedInteger")
    upto = _cell("r.after", "sequence", "SignedInteger")
    claim = (
        f"IF(array_contains(columns, 'leader_gtid'), coalesce({_cell('r.after', 'leader_gtid', 'String')}, ''), NULL)"
    )
    # The first row is inserted before anything is applied, and names no transaction.
    claim = f"IF(r.before IS NULL AND {upto} = '-1', NULL, {claim})"
    of_leader = f"filter(rows, r -> {_is_of('r.after', resource)})"
    position = f"named_struct('upto', bigint({upto}), 'since', coalesce(bigint({since}), -1), 'claim', {claim})"
    all_ = f"transform({of_leader}, r -> {position})"
    return f"""
        CASE WHEN {_IN_OWN_DATABASE} AND table = 'checkpoint' AND size(rows) > 0 THEN named_struct(
            'since', array_min(transform({all_}, p -> p.since)),
            'upto', array_max({all_}).upto, 'claim', array_max({all_}).claim) END
    """


def changed_by_others(resource: str) -> str:
    """SQL for the full name of the consumer's own table that a record changes in a way the consumer of the leader
    ``resource`` never does, except by moving its checkpoint; NULL for any other record.

    Rows that consumers of other leaders keep in the same tables are ignored.
    """
    notes_an_intent = f"forall(rows, r -> r.before IS NULL AND {_cell('r.after', 'state', 'Enum')} = 'intent')"
    first_checkpoint = f"forall(rows, r -> r.before IS NULL AND {_cell('r.after', 'sequence', 'SignedInteger')} = '-1')"
    return f"""
        CASE
            WHEN NOT ({_IN_OWN_DATABASE}) THEN NULL
            WHEN query IS NOT NULL THEN IF({_CREATES_OWN_TABLES}, NULL,
                concat_ws('.', database, url_decode(get(split(affects[0].uri, '/'), 4))))
            WHEN table = 'ledger' AND coalesce({notes_an_intent}, false) THEN NULL
            WHEN table = 'checkpoint' AND coalesce({first_checkpoint}, false) THEN NULL
            WHEN table = 'seeds' AND coalesce(forall(rows, r -> r.after IS NULL), false) THEN NULL
            WHEN NOT exists(rows, r -> coalesce({_is_of("coalesce(r.after, r.before)", resource)}, true)) THEN NULL
            ELSE concat_ws('.', database, table)
        END
    """
