package p4

import (
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A replica before it knows a changelist, a submit or a shelf. The lag of an hour does
// not end in this test.
func TestLaggingReplica(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault  string
		number review.Changelist
		how    review.Reading
	}{
		{`{"fault":"lag","for":"1h"}`, 103, review.Reading{}},
		{`{"fault":"lag","for":"1h","as":"pending"}`, 103, review.Reading{}},
		{`{"fault":"lag","for":"1h","as":"pending"}`, 110, review.Reading{Shelved: true}},
	} {
		fetcher := simFetcher(t, "testdata/history.txtar", "P4SIM_SERVICES=replica", "P4SIM_FAULT="+tt.fault)
		for range 2 {
			if _, err := fetcher.Read(t.Context(), tt.number, tt.how); failure.ClassOf(err) != failure.ReplicaBehind {
				t.Errorf("%s, change %d: %v", tt.fault, tt.number, err)
			}
		}
	}
}

// A server that ignores case serves a path in any case, and the search for changes
// finds it.
func TestInsensitiveServer(t *testing.T) {
	t.Parallel()
	fetcher := simFetcher(t, "testdata/history.txtar", "P4SIM_CASE=insensitive")
	list, err := fetcher.submitted(t.Context(), nil, []string{"//DEPOT/Tool/...@101,@107"})
	if err != nil || len(list) == 0 {
		t.Errorf("changes: %v, %v", list, err)
	}
	s, err := fetcher.connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := fetch{server: s, cfg: fetcher.cfg}
	p, err := x.print(t.Context(), []string{"//Depot/TOOL/main.c#1"}, 0)
	if err != nil || !p.of("//depot/tool/MAIN.c#1").complete {
		t.Errorf("print: %+v, %v", p, err)
	}
}
