package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A fault is one way of failing; the package comment describes them.
type fault struct {
	Fault   string            `json:"fault"`
	Cmd     string            `json:"cmd,omitempty"`
	Times   int               `json:"times,omitempty"`
	After   int               `json:"after,omitempty"`
	ID      string            `json:"id,omitempty"`
	Args    map[string]string `json:"args,omitempty"`
	Text    string            `json:"text,omitempty"`
	Sev     int               `json:"severity,omitempty"`
	Generic int               `json:"generic,omitempty"`
	For     string            `json:"for,omitempty"`
	Bytes   int               `json:"bytes,omitempty"`
	Code    int               `json:"code,omitempty"`
	Note    string            `json:"note,omitempty"`
	// line is the text of the fault; its counters belong to that.
	line string
	wait time.Duration // For, parsed
}

// faultNames are the faults there are.
var faultNames = []string{
	"message", "refused", "hang", "drop", "slow", "lag", "trust", "noise", "reject", "latin1", "giant", "stderr", "exit",
}

func parseFault(line string) (fault, error) {
	f := fault{line: line}
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, err
	}
	if err := f.validate(); err != nil || f.For == "" {
		return f, err
	}
	var err error
	f.wait, err = time.ParseDuration(f.For)
	return f, err
}

func (f fault) validate() error {
	if !slices.Contains(faultNames, f.Fault) {
		return fmt.Errorf("fault %q is none of %s", f.Fault, strings.Join(faultNames, ", "))
	}
	if f.Fault == "message" && f.ID != "" && catalogue[f.ID] == nil {
		return fmt.Errorf("message %q is not in the catalogue: give text, severity and generic instead of id", f.ID)
	}
	return nil
}

// faults are those that strike this command.
type faults struct {
	active   []fault
	stateDir string
	out      *printer
	records  int
}

// loadFaults reads the faults asked for and spends one of the times of each
// that is limited.
func loadFaults(s settings, command, stateDir string, out *printer) (*faults, error) {
	text := s["P4SIM_FAULT"]
	if name := s["P4SIM_FAULT_FILE"]; name != "" {
		file, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("read P4SIM_FAULT_FILE: %w", err)
		}
		text += "\n" + string(file)
	}
	fs := &faults{stateDir: stateDir, out: out}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f, err := parseFault(line)
		if err != nil {
			return nil, fmt.Errorf("read fault %s: %w", line, err)
		}
		if f.strikes(command) && fs.spend(f) {
			fs.active = append(fs.active, f)
		}
	}
	return fs, nil
}

func (f fault) strikes(command string) bool {
	return f.Cmd == "" || slices.Contains(strings.Split(f.Cmd, ","), command)
}

// spend takes one of the fault's times; false if there is none left. Each time
// is a file that only one process can create.
func (fs *faults) spend(f fault) bool {
	for n := range f.Times {
		name := fs.counter(f, fmt.Sprintf("times-%d", n))
		if file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			return file.Close() == nil
		}
	}
	return f.Times == 0
}

// counter names a file of state that belongs to one fault.
func (fs *faults) counter(f fault, kind string) string {
	sum := sha256.Sum256([]byte(f.line))
	return filepath.Join(fs.stateDir, fmt.Sprintf("fault-%x-%s", sum[:6], kind))
}

// find returns the first active fault of a name, or nil.
func (fs *faults) find(name string) *fault {
	for i := range fs.active {
		if fs.active[i].Fault == name {
			return &fs.active[i]
		}
	}
	return nil
}

// connect fails the way a server does that cannot be reached.
func (fs *faults) connect(port string) bool {
	if f := fs.find("refused"); f != nil {
		fs.out.clientError(parseAddress(port).refusal()...)
		return false
	}
	if f := fs.find("trust"); f != nil {
		fs.out.fail(hostKeyUnknown.byClient(port, cmp.Or(f.Text, strings.TrimSuffix(strings.Repeat("5A:", 20), ":")), "p4 trust"))
		return false
	}
	if f := fs.find("noise"); f != nil {
		fs.out.info(0, cmp.Or(f.Text, "verbose trigger"))
	}
	if f := fs.find("reject"); f != nil {
		fs.out.info(0, cmp.Or(f.Text, "The broker rejected this command."))
		return false
	}
	return fs.strike()
}

// before strikes before a record; false ends the command there.
func (fs *faults) before() bool {
	if f := fs.find("slow"); f != nil {
		time.Sleep(cmp.Or(f.wait, 50*time.Millisecond))
	}
	proceed := fs.strike()
	fs.records++
	return proceed
}

// strike ends the command if a fault waited for as many records as there were.
func (fs *faults) strike() bool {
	for _, f := range fs.active {
		if fs.records != f.After {
			continue
		}
		switch f.Fault {
		case "hang":
			fs.flush()
			for {
				time.Sleep(time.Hour)
			}
		case "drop":
			fs.out.complain(partnerExited.byClient())
			fs.out.clientError(partnerExited.byClient())
			return false
		case "message":
			fs.out.complain(f.utterance())
			return false
		}
	}
	return true
}

// flush lets a caller see what was printed before a hang.
func (fs *faults) flush() {
	// A caller that is gone cannot be told.
	_ = fs.out.stdout.Flush()
}

// utterance is the message that the fault asks for.
func (f fault) utterance() utterance {
	m := catalogue[f.ID]
	if m == nil {
		return (&message{severity: cmp.Or(f.Sev, failed), generic: f.Generic, format: "%text%"}).with(f.Text)
	}
	u := m.with()
	for _, name := range m.argNames() {
		if len(u.args) < len(f.Args) {
			u.args = append(u.args, f.Args[name])
		}
	}
	return u
}

// lags reports whether the server has not heard of a change yet: it does some
// time after it was asked for first.
func (fs *faults) lags(change int) bool {
	f := fs.find("lag")
	if f == nil {
		return false
	}
	name := fs.counter(*f, fmt.Sprintf("lag-%d", change))
	if file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		return file.Close() == nil
	}
	stat, err := os.Stat(name)
	return err == nil && time.Since(stat.ModTime()) < f.wait
}

// spoil makes a description hard to read.
func (fs *faults) spoil(desc raw) raw {
	if f := fs.find("latin1"); f != nil {
		desc = "Gr\xfc\xdfe \x96 " + desc
	}
	if f := fs.find("giant"); f != nil {
		desc = raw(strings.Repeat("x", cmp.Or(f.Bytes, 4<<20))) + desc
	}
	return desc
}

// finish changes how a command ends that did all its work.
func (fs *faults) finish(stderr io.Writer, code int) int {
	if f := fs.find("stderr"); f != nil {
		fmt.Fprintln(stderr, cmp.Or(f.Text, "something looks odd, but goes on"))
	}
	if f := fs.find("exit"); f != nil {
		return cmp.Or(f.Code, 1)
	}
	return code
}
