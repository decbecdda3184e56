package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/testkit"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault   string
		exit    int
		changes string // what was printed
		message record // the last record
		stderr  string
	}{
		{`{"fault":"refused"}`, 1, "", nil, "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n\tTCP connect to sim:1666 failed.\n\tconnect: sim:1666: Connection refused\n"},
		{`{"fault":"refused","cmd":"describe,print"}`, 0, "7 6 3", nil, ""},
		{`{"fault":"trust"}`, 1, "", record{"severity": "3", "generic": "38"}, ""},
		{`{"fault":"message","text":"100% [odd].","severity":2}`, 0, "", record{"data": "100% [odd].\n", "severity": "2", "generic": "0"}, ""},
	} {
		got := p4(smallEnv(t, "P4SIM_FAULT="+test.fault), "", "-G", "changes", "-m", "3")
		all := decodeRecords(t, got.stdout)
		if test.message != nil {
			holds(t, all[len(all)-1], test.message)
			all = all[:len(all)-1]
		}
		if got.exit != test.exit || column(all, "change") != test.changes || got.stderr != test.stderr {
			t.Errorf("%s: %+v", test.fault, got)
		}
	}
}

// The first request for a change starts the time of a lag: its counter is a file.
func TestLag(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, `P4SIM_FAULT={"fault":"lag","for":"1h"}`)
	for range 2 {
		holds(t, records(t, env, "describe", "2")[0], record{"status": "pending", "depotFile0": "-"})
	}
	if all := records(t, env, "changes", "//depot/src/...@2,@3"); len(all) != 0 {
		t.Errorf("changes that have not arrived: %v", all)
	}
	counters, err := filepath.Glob(filepath.Join(env[1][len("P4SIM_STATE="):], "lag-2"))
	if err != nil || len(counters) != 1 {
		t.Fatalf("counters %q, %v", counters, err)
	}
	before := time.Now().Add(-2 * time.Hour)
	testkit.NoError(t, os.Chtimes(counters[0], before, before))
	holds(t, records(t, env, "describe", "2")[0], record{"status": "submitted", "change": "2"})
}

func TestMalformedFaultsAreErrors(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"fault":"melt"}`, `{"fault":"refused","comand":1}`, `{"fault":"lag","for":"soon"}`, `refused`,
	} {
		if got := p4(smallEnv(t, "P4SIM_FAULT="+line), "", "info"); got.exit != 1 || !strings.HasPrefix(got.stderr, "p4sim: error: read fault ") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
