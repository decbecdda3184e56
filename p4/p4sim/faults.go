package main

import (
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
	Fault, Cmd, Text, For, Path string
	Severity, Generic           int

	lag time.Duration // For, parsed
}

var faultNames = []string{"refused", "trust", "lag", "damaged", "message"}

func parseFault(line string) (f fault, err error) {
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&f)
	switch {
	case err != nil:
	case !slices.Contains(faultNames, f.Fault):
		err = fmt.Errorf("fault %q is none of %s", f.Fault, strings.Join(faultNames, ", "))
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
		if f.Cmd == "" || slices.Contains(strings.Split(f.Cmd, ","), command) {
			all.active = append(all.active, f)
		}
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
		case "message":
			fs.out.message(message{f.Severity, f.Generic, f.Text})
		default:
			continue
		}
		return false
	}
	return true
}

// lags reports whether the server does not have the submit of a change yet. It gets the
// submit some time after the first request for the change, which makes a file.
func (fs *faults) lags(change int) bool {
	f := fs.find("lag")
	if f == nil {
		return false
	}
	name := filepath.Join(fs.stateDir, fmt.Sprintf("lag-%d", change))
	if stat, err := os.Stat(name); err == nil {
		return time.Since(stat.ModTime()) < f.lag
	}
	_ = os.WriteFile(name, nil, 0o600)
	return true
}

// damages reports whether a fault says that the archive of a revision is damaged.
func (fs *faults) damages(r *revision) bool {
	f := fs.find("damaged")
	return f != nil && f.Path == fmt.Sprintf("%s#%d", r.Path, r.Rev)
}
