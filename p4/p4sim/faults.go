package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A fault is one way of failing; the package comment describes them.
type fault struct {
	Fault, Cmd, ID, Text, For, As, Path string
	Severity, Generic, After, Times     int

	line string        // the fault as it was written, which names its files of state
	lag  time.Duration // For, parsed
}

var faultNames = []string{"refused", "trust", "drop", "lag", "damaged", "message"}

func parseFault(line string) (f fault, err error) {
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&f)
	f.line = line
	_, known := faultMessages[f.ID]
	switch {
	case err != nil:
	case !slices.Contains(faultNames, f.Fault):
		err = fmt.Errorf("fault %q is none of %s", f.Fault, strings.Join(faultNames, ", "))
	case f.ID != "" && !known:
		err = fmt.Errorf("message %q is not known: give text, severity and generic instead of id", f.ID)
	case f.For != "":
		f.lag, err = time.ParseDuration(f.For)
	}
	return f, err
}

// faults are those that apply to this command.
type faults struct {
	active   []fault
	stateDir string
	out      *printer
}

// loadFaults reads the faults that apply to a command.
func loadFaults(s settings, command string, out *printer) (*faults, error) {
	text := s["P4SIM_FAULT"]
	if name := s["P4SIM_FAULT_FILE"]; name != "" {
		file, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read P4SIM_FAULT_FILE: %w", err)
		}
		text += "\n" + string(file)
	}
	dir, err := s.stateDir()
	if err != nil {
		return nil, err
	}
	all := &faults{stateDir: dir, out: out}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f, err := parseFault(line)
		if err != nil {
			return nil, fmt.Errorf("read fault %s: %w", line, err)
		}
		if f.Cmd != "" && !slices.Contains(strings.Split(f.Cmd, ","), command) || f.Times > 0 && all.count(f) > f.Times {
			continue
		}
		all.active = append(all.active, f)
	}
	return all, nil
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

// connect applies the faults of the connection, and reports whether the command is run.
func (fs *faults) connect(port string) bool {
	for i := range fs.active {
		switch f := &fs.active[i]; f.Fault {
		case "refused":
			fs.out.clientError("Connect to server failed; check $P4PORT.", "TCP connect to "+port+" failed.", "connect: "+port+": Connection refused")
		case "trust":
			fs.out.message(keyNotTrusted, port, strings.TrimSuffix(strings.Repeat("5A:", 20), ":"))
		case "drop":
			if fs.out.left = f.After; f.After > 0 {
				continue
			}
			fs.out.drop()
		case "message":
			m, known := faultMessages[f.ID]
			if !known {
				m = message{f.Severity, f.Generic, f.Text}
			}
			fs.out.message(m)
		default:
			continue
		}
		return false
	}
	return true
}

// lags returns the fault if the server does not have a change yet. It gets the change
// some time after the first request for it, which makes a file.
func (fs *faults) lags(change int) *fault {
	f := fs.find("lag")
	if f == nil {
		return nil
	}
	name := fs.stateFile(*f, fmt.Sprintf("lag-%d", change))
	stat, err := os.Stat(name)
	if err == nil && time.Since(stat.ModTime()) >= f.lag {
		return nil
	}
	if file, err := os.OpenFile(name, os.O_CREATE, 0o600); err == nil {
		_ = file.Close()
	}
	return f
}

// stateFile names a file of a fault that outlives the process.
func (fs *faults) stateFile(f fault, what string) string {
	sum := sha256.Sum256([]byte(f.line))
	return filepath.Join(fs.stateDir, fmt.Sprintf("fault-%x-%s", sum[:6], what))
}

// count counts the commands that a fault applies to, as the bytes of a file.
func (fs *faults) count(f fault) int {
	name := fs.stateFile(f, "times")
	before, _ := os.ReadFile(name)
	_ = os.WriteFile(name, append(before, '.'), 0o600)
	return len(before) + 1
}

// damages reports whether a fault says that the archive of a revision is damaged.
func (fs *faults) damages(r *revision) bool {
	f := fs.find("damaged")
	return f != nil && f.Path == fmt.Sprintf("%s#%d", r.Path, r.Rev)
}
