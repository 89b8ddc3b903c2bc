-- How many orders there are in each state, kept up to date by what changed, as an incremental model of dbt does it.
--
-- For the table shop.orders of a lake that cdc-lake keeps in lake/, in Delta and with --history. Run it as often as you
-- like, by one process at a time: it reads the changes that came since, and each counts once, since the model's own
-- commit says up to which sequence it has them.

CREATE TABLE IF NOT EXISTS delta.`lake/models/orders_by_state` (state STRING, orders BIGINT, sequence BIGINT) USING delta;

DECLARE OR REPLACE VARIABLE known BIGINT DEFAULT -1;

SET VAR known = (SELECT coalesce(max(sequence), -1) FROM delta.`lake/models/orders_by_state`);

MERGE INTO delta.`lake/models/orders_by_state` AS model
USING (
    WITH changes AS (
        SELECT
            get_json_object(before['state'], '$.Enum') AS old_state,
            get_json_object(after['state'], '$.Enum') AS new_state,
            max(sequence) OVER () AS newest
        FROM delta.`lake/_history/shop/orders`
        WHERE op != 'statement' AND sequence > known
    ), counted AS (
        SELECT new_state AS state, 1 AS orders, newest FROM changes WHERE new_state IS NOT NULL
        UNION ALL
        SELECT old_state AS state, -1 AS orders, newest FROM changes WHERE old_state IS NOT NULL
    )
    SELECT state, sum(orders) AS orders, max(newest) AS sequence FROM counted GROUP BY state
) AS came
ON model.state = came.state
WHEN MATCHED THEN UPDATE SET model.orders = model.orders + came.orders, model.sequence = came.sequence
WHEN NOT MATCHED THEN INSERT (state, orders, sequence) VALUES (came.state, came.orders, came.sequence);
