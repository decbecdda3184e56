// Package queuebench measures how fast the rewrite queue and riverqueue/river claim and
// complete jobs on the same Postgres. It is a separate module, so that the product does not
// depend on River.
package queuebench
