package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	const closed = "Partner exited unexpectedly.\n"
	for _, test := range []struct {
		fault   string
		exit    int
		changes string // what was printed before
		message record // the last record
		stderr  string
	}{
		{`{"fault":"refused"}`, 1, "", nil, "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n\tTCP connect to sim:1666 failed.\n\tconnect: sim:1666: Connection refused\n"},
		{`{"fault":"refused","cmd":"describe,print"}`, 0, "7 6 3", nil, ""},
		{`{"fault":"trust"}`, 1, "", record{"severity": "3", "generic": "38"}, ""},
		{`{"fault":"drop"}`, 1, "", record{"data": closed, "generic": "38"}, "Perforce client error:\n\t" + closed},
		{`{"fault":"drop","after":2}`, 1, "7 6", record{"data": closed}, "Perforce client error:\n\t" + closed},
		{`{"fault":"message","id":"MsgServer::LoginExpired","after":1}`, 1, "7", record{"data": "Your session has expired, please login again.\n", "generic": "4"}, ""},
		{`{"fault":"message","id":"MsgDb::MaxResults"}`, 1, "", record{"data": "Request too large (over 1000); see 'p4 help maxresults'.\n"}, ""},
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

func TestFaultsAreCountedAcrossProcesses(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, `P4SIM_FAULT={"fault":"message","id":"MsgServer::TooManyCommands","times":3}`)
	var failed atomic.Int32
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if got := runProcess(t, env, "info"); got.exit != 0 {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	if failed.Load() != 3 {
		t.Errorf("failed %d times, want 3", failed.Load())
	}
}

// The first request for a change starts the time of a lag: its counter is a file.
func TestLag(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, `P4SIM_FAULT={"fault":"lag","for":"1h"}`)
	for _, args := range [][]string{{"describe", "2"}, {"describe", "2"}, {"reviews", "-c", "3"}} {
		holds(t, records(t, env, args...)[0], record{"code": "error", "generic": "2"})
	}
	if all := records(t, env, "changes", "//depot/src/...@2,@3"); len(all) != 0 {
		t.Errorf("changes that have not arrived: %v", all)
	}
	counters, err := filepath.Glob(filepath.Join(env[1][len("P4SIM_STATE="):], "fault-*-lag-2"))
	if err != nil || len(counters) != 1 {
		t.Fatalf("counters %q, %v", counters, err)
	}
	before := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(counters[0], before, before); err != nil {
		t.Fatal(err)
	}
	holds(t, records(t, env, "describe", "2")[0], record{"code": "stat", "change": "2"})
}

func TestHangingProcessPrintsWhatItHas(t *testing.T) {
	t.Parallel()
	cmd := process(smallEnv(t, `P4SIM_FAULT={"fault":"hang","after":1}`), "changes")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("... change 7\n"))
	if _, err := stdout.Read(first); err != nil || string(first) != "... change 7\n" {
		t.Errorf("read %q, %v", first, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
}

func TestMalformedFaultsAreErrors(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"fault":"melt"}`, `{"fault":"drop","afer":1}`, `{"fault":"message","id":"MsgNo::Such"}`, `{"fault":"lag","for":"soon"}`, `drop`,
	} {
		if got := p4(smallEnv(t, "P4SIM_FAULT="+line), "", "info"); got.exit != 1 || !strings.HasPrefix(got.stderr, "p4sim: error: read fault ") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestRangesOverTheLimit(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, `P4SIM_FAULT={"fault":"limit","rows":5}`)
	for spec, ok := range map[string]bool{"//...@2,@6": true, "//...@2,@7": false, "//...": true} {
		if got := p4(env, "", "-G", "changes", spec); (got.exit == 0) != ok {
			t.Errorf("%s: %+v", spec, got)
		}
	}
}
