package main

import (
	"strings"
	"testing"
)

const printed = `goos: linux
goarch: amd64
pkg: example.com/x
BenchmarkSource/criticizer-2         	      10	 104857600 ns/op	 150.25 MB/s	 5 allocs/op
BenchmarkSource/gitleaks             	       1	5000000000 ns/op	   3.50 MB/s
BenchmarkClaim/river-2               	     100	   1000 ns/op	 19300 jobs/s
BenchmarkClaim/river-2               	     100	   1000 ns/op	 12000 jobs/s
BenchmarkClaim/river-2               	     100	   1000 ns/op	 99000 jobs/s
PASS
`

func TestFigures(t *testing.T) {
	t.Parallel()
	got := parse(strings.NewReader(printed))
	for want, value := range map[figure]float64{
		{"Source/criticizer", "MB/s"}: 150.25, // go test's own
		{"Source/gitleaks", "MB/s"}:   3.5,    // on one core
		{"Claim/river", "jobs/s"}:     19300,  // a metric of ours, the median
		{"Claim/river", "MB/s"}:       0,      // not reported
	} {
		if got.median(want) != value {
			t.Errorf("%v is %v, want %v", want, got.median(want), value)
		}
	}
}
