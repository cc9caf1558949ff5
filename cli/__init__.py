"""The command `optimist`: looks at Delta tables and keeps them in order, without Spark."""
