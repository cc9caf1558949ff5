"""SQL and nothing else, as it stands in files that a scheduler runs one after the other."""

import shutil
import tempfile

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("sql only").getOrCreate()
folder = tempfile.mkdtemp()

STATEMENTS = """
CREATE DATABASE books LOCATION '{folder}/books';
USE books;
CREATE TABLE sales (
  id BIGINT NOT NULL COMMENT 'by the till',
  day DATE,
  price DECIMAL(8, 2),
  tax DECIMAL(8, 2) GENERATED ALWAYS AS (CAST(price * 0.2 AS DECIMAL(8, 2)))
) USING DELTA PARTITIONED BY (day) COMMENT 'all sales'
TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'team' = 'till');
INSERT INTO sales (id, day, price) VALUES
  (1, DATE '2025-01-01', 10), (2, DATE '2025-01-01', 20.5), (3, DATE '2025-01-02', 7);
INSERT INTO sales BY NAME SELECT 9.99 AS price, 4L AS id, DATE '2025-01-03' AS day;
SELECT * FROM sales ORDER BY id;
UPDATE sales SET price = price + 1 WHERE id = 2;
DELETE FROM sales WHERE day = '2025-01-02';
MERGE INTO sales t
USING (SELECT 1L AS id, DATE '2025-01-01' AS day, 11.5 AS price
       UNION ALL SELECT 8L, DATE '2025-01-04', 3.5) s
ON t.id = s.id
WHEN MATCHED THEN UPDATE SET price = s.price
WHEN NOT MATCHED THEN INSERT (id, day, price) VALUES (s.id, s.day, s.price);
SELECT id, price, tax FROM sales ORDER BY id;
SELECT count(*) AS before FROM sales VERSION AS OF 1;
SELECT _change_type, count(*) AS rows FROM table_changes('sales', 3, 5) GROUP BY 1 ORDER BY 1;
INSERT OVERWRITE sales PARTITION (day = '2025-01-04') (id, price) SELECT 80, 4.5;
INSERT INTO sales REPLACE WHERE day = '2025-01-03' SELECT 40, DATE '2025-01-03', 8, 1.6;
WITH dear AS (SELECT * FROM sales WHERE price > 5)
SELECT day, sum(price) AS price, sum(tax) AS tax FROM dear GROUP BY day ORDER BY day;
CREATE VIEW late AS SELECT id FROM sales WHERE day > '2025-01-02';
SELECT * FROM late ORDER BY id;
CREATE OR REPLACE TABLE daily USING DELTA CLUSTER BY (day)
AS SELECT day, count(*) AS sold FROM sales GROUP BY day;
SELECT * FROM daily ORDER BY day;
ALTER TABLE daily SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE daily RENAME COLUMN sold TO number;
ALTER TABLE daily ADD COLUMN weather STRING;
ALTER TABLE daily ALTER COLUMN weather COMMENT 'if known';
SELECT * FROM daily ORDER BY day DESC LIMIT 2;
ALTER TABLE daily DROP COLUMN weather;
SHOW COLUMNS IN daily;
DESCRIBE sales;
SELECT d.number FROM daily d JOIN delta.`{folder}/books/sales` s ON d.day = s.day AND s.id = 40;
CREATE TABLE made USING DELTA LOCATION '{folder}/made' AS SELECT id FROM range(3);
TRUNCATE TABLE made;
SELECT count(*) AS left_over FROM delta.`{folder}/made`;
DROP TABLE made;
DROP VIEW late;
SHOW TABLES LIKE 'dail*';
USE default;
DROP DATABASE books CASCADE;
"""

for statement in STATEMENTS.format(folder=folder).strip().rstrip(";").split(";\n"):
    print(" ".join(statement.replace(folder, "...").split())[:70])
    answer = spark.sql(statement)
    if answer.columns:
        answer.show(truncate=False)

print("the database is gone:", not spark.catalog.databaseExists("books"))
shutil.rmtree(folder)
