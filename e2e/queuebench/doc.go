// Package queuebench measures how fast the rewrite queue claims and finishes
// jobs, beside riverqueue/river on the same Postgres in the same run. It is a
// module of its own, so that River is no dependency of the product.
package queuebench
