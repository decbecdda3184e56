package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func withFault(env []string, line string) []string {
	return append([]string{"P4SIM_FAULT=" + line}, env...)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	const closed = "Partner exited unexpectedly.\nPerforce client error:\n\tPartner exited unexpectedly.\n"
	for _, test := range []struct {
		fault string
		want  result
	}{
		{`{"fault":"refused"}`, result{1, "", "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n\tTCP connect to sim:1666 failed.\n\tconnect: sim:1666: Connection refused\n"}},
		{`{"fault":"refused","cmd":"describe,print"}`, result{0, "7\n6\n5\n", ""}},
		{`{"fault":"drop"}`, result{1, "", closed}},
		{`{"fault":"drop","after":2}`, result{1, "7\n6\n", closed}},
		{`{"fault":"message","id":"MsgServer::LoginExpired","after":1}`, result{1, "7\n", "Your session has expired, please login again.\n"}},
		{`{"fault":"message","text":"100% [odd].","severity":2}`, result{0, "", "100% [odd].\n"}},
		{`{"fault":"slow","for":"1ns"}`, result{0, "7\n6\n5\n", ""}},
		{`{"fault":"reject","text":"No."}`, result{0, "No.\n", ""}},
		{`{"fault":"noise"}`, result{0, "verbose trigger\n7\n6\n5\n", ""}},
		{`{"fault":"stderr","text":"odd"}`, result{0, "7\n6\n5\n", "odd\n"}},
		{`{"fault":"exit"}`, result{1, "7\n6\n5\n", ""}},
		{"# none\n" + `{"fault":"noise","text":"1"}` + "\n" + `{"fault":"exit","code":7}`, result{7, "1\n7\n6\n5\n", ""}},
	} {
		if got := p4(withFault(env, test.fault), "", "-F", "%change%", "changes", "-m3"); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.fault, got, test.want)
		}
	}
}

func TestUnknownKeysAndNoise(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	trust := records(t, p4(withFault(env, `{"fault":"trust"}`), "", "-ztag", "-Mj", "info"))
	if len(trust) != 1 || trust[0]["generic"] != 38.0 || !strings.HasPrefix(trust[0]["data"].(string), "The authenticity of 'sim:1666' can't be established,") {
		t.Errorf("trust: %v", trust)
	}
	noise := p4(withFault(env, `{"fault":"noise"}`), "", "-ztag", "-Mj", "counter", "x")
	if !strings.HasPrefix(noise.stdout, "{\"data\":\"verbose trigger\",\"level\":0}\n{\"counter\"") {
		t.Errorf("noise: %+v", noise)
	}
}

func TestSpoiledDescriptions(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	got := p4(withFault(env, `{"fault":"latin1"}`), "", "-F", "%desc%", "describe", "1")
	expect(t, got, "Gr\xfc\xdfe \x96 First.\n\n")
	got = p4(withFault(env, `{"fault":"giant","bytes":100000}`), "", "-ztag", "-Mj", "describe", "-s", "1")
	if len(got.stdout) < 100000 || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("%d bytes in %d lines", len(got.stdout), strings.Count(got.stdout, "\n"))
	}
}

func TestFaultsAreCountedAcrossProcesses(t *testing.T) {
	t.Parallel()
	env := withFault(smallEnv(t, smallDepot), `{"fault":"message","id":"MsgServer::TooManyCommands","args":{"maxCommands":"5"},"times":3}`)
	var failed atomic.Int32
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if got := runProcess(t, env, "counter", "change"); got.exit != 0 {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	if failed.Load() != 3 {
		t.Errorf("failed %d times, want 3", failed.Load())
	}
}

func TestReplicaLag(t *testing.T) {
	t.Parallel()
	env := withFault(smallEnv(t, smallDepot), `{"fault":"lag","for":"300ms"}`)
	if got := p4(env, "", "describe", "-s", "2"); got.exit != 1 || got.stderr != "Change 2 unknown.\n" {
		t.Fatalf("at once: %+v", got)
	}
	time.Sleep(350 * time.Millisecond)
	if got := p4(env, "", "describe", "-s", "2"); got.exit != 0 {
		t.Errorf("later: %+v", got)
	}
}

func TestFaultFileIsReadByEveryRun(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "faults")
	env := smallEnv(t, smallDepot, "P4SIM_FAULT_FILE="+name)
	expect(t, p4(env, "", "counter", "change"), "7\n")
	if err := os.WriteFile(name, []byte(`{"fault":"refused"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p4(env, "", "counter", "change"); got.exit != 1 {
		t.Errorf("with the file: %+v", got)
	}
}

func TestHangingProcessPrintsWhatItHas(t *testing.T) {
	t.Parallel()
	env := withFault(smallEnv(t, smallDepot), `{"fault":"hang","after":1}`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := process(env, "-F", "%change%", "changes")
	var stdout lines
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for stdout.String() == "" && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || stdout.String() != "7\n" {
		t.Errorf("ended with %v after %q", err, stdout.String())
	}
}

// lines is a buffer that may be read while a process writes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestFaultsThatMakeNoSenseAreErrors(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	for _, line := range []string{
		`{"fault":"melt"}`, `{"fault":"drop","afer":1}`, `{"fault":"message","id":"MsgNo::Such"}`, `{"fault":"lag","for":"soon"}`, `drop`,
	} {
		if got := p4(withFault(env, line), "", "info"); got.exit != 1 || !strings.HasPrefix(got.stderr, "p4sim: error: read fault ") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestAddressesWhereNoServerCanBe(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	for port, want := range map[string]string{
		"1":                   "TCP connect to localhost:1 failed.\n\tconnect: 127.0.0.1:1: Connection refused\n",
		"tcp:db.invalid:1666": "TCP connect to db.invalid:1666 failed.\n\tName or service not known\n",
		"ssl:db.invalid:1666": "check $P4PORT.\n\tName or service not known\n",
		"server:65536":        "TCP port number 65536 is out of range.\n",
		"ssl:127.0.0.1:1":     "check $P4PORT.\n\tconnect: 127.0.0.1:1: Connection refused\n",
	} {
		if got := p4(env, "", "-p", port, "info"); got.exit != 1 || got.stdout != "" || !strings.HasSuffix(got.stderr, want) {
			t.Errorf("%s: %+v", port, got)
		}
	}
}
