package p4

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tools/p4check.sh finds no difference on the stand-in, and names what a server does
// otherwise.
func TestP4Check(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		setting string
		verdict string // line that the output holds
		exit    int
	}{
		"a server as assumed":        {"", "ok       //depot/tool/main.c#2 (text+k): the digest is that", 0},
		"a replica":                  {"P4SIM_SERVICES=replica", "note     services: replica", 0},
		"hybrid case handling":       {"P4SIM_CASE=hybrid", "differs  case handling: 'hybrid'", 1},
		"list without read":          {"P4SIM_PERMISSION=list", "differs  //depot/tool/main.c#2 (text+k): print: //depot/tool/main.c#2 - protected namespace", 1},
		"a limit":                    {`P4SIM_FAULT={"fault":"message","cmd":"changes","text":"Too many rows scanned (over 5); see 'p4 help maxscanrows'.","severity":3,"generic":35}`, "differs  //depot/tool/...: no submitted changelist: Too many rows scanned", 1},
		"an expired ticket":          {`P4SIM_FAULT={"fault":"message","text":"Your session has expired, please login again.","severity":3,"generic":4,"cmd":"login"}`, "differs  login -s: Your session has expired", 1},
		"refused subscriptions":      {`P4SIM_FAULT={"fault":"message","text":"You don't have permission for this operation.","severity":3,"generic":6,"cmd":"reviews"}`, "differs  p4 reviews -c 107: You don't have permission", 1},
		"a damaged archive":          {`P4SIM_FAULT={"fault":"damaged","path":"//depot/tool/main.c#2"}`, "differs  //depot/tool/main.c#2 (text+k): print: Operation 'user-print' failed.", 1},
		"a server that is not there": {`P4SIM_FAULT={"fault":"refused"}`, "differs  info -s: Perforce client error:", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fetcher := simFetcher(t, "testdata/history.txtar", tt.setting)
			cmd := exec.CommandContext(t.Context(), "sh", "../tools/p4check.sh", "//depot/tool/...")
			cmd.Env = append(os.Environ(), "P4PORT=sim:1666", "P4USER=ann", "PATH="+filepath.Dir(fetcher.cfg.Command)+":"+os.Getenv("PATH"))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, _ := cmd.Output()
			if cmd.ProcessState.ExitCode() != tt.exit || !strings.Contains(string(out), tt.verdict) || strings.Contains(string(out), "differs") != (tt.exit != 0) || stderr.Len() > 0 {
				t.Errorf("exit %d, want %d with %q:\n%s%s", cmd.ProcessState.ExitCode(), tt.exit, tt.verdict, out, stderr.String())
			}
		})
	}
}
