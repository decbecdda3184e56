// Package sample has one mutant of each kind, or more.
package sample

import "time"

const day = 24 * time.Hour // constants have no mutants

type counts struct{ calls int }

func (c *counts) add(n int) (half int, odd bool) {
	c.calls++
	return n / 2, n%2 == 1
}

func clamp(n, top time.Duration) time.Duration {
	if n > top {
		return top
	}
	return max(n, -day)
}

func join(a, b string) string { return a + b }

func countdown(n int) (steps int) {
	for ; n > 0; n-- {
		steps++
	}
	return steps
}

func unused(n int) int { return n - 1 }
