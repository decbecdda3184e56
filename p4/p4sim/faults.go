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
	Fault    string `json:"fault"`
	Cmd      string `json:"cmd"`
	Times    int    `json:"times"`
	After    int    `json:"after"`
	ID       string `json:"id"`
	Text     string `json:"text"`
	Severity int    `json:"severity"`
	Generic  int    `json:"generic"`
	For      string `json:"for"`
	As       string `json:"as"`
	Path     string `json:"path"`
	Rows     int    `json:"rows"`

	line string        // the fault as it was written, which names its counters
	lag  time.Duration // For, parsed
}

var faultNames = []string{"refused", "trust", "hang", "drop", "lag", "damaged", "limit", "message"}

func parseFault(line string) (fault, error) {
	f := fault{line: line}
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, err
	}
	if !slices.Contains(faultNames, f.Fault) {
		return f, fmt.Errorf("fault %q is none of %s", f.Fault, strings.Join(faultNames, ", "))
	}
	if _, known := faultMessages[f.ID]; f.ID != "" && !known {
		return f, fmt.Errorf("message %q is not known: give text, severity and generic instead of id", f.ID)
	}
	if f.For == "" {
		return f, nil
	}
	var err error
	f.lag, err = time.ParseDuration(f.For)
	return f, err
}

// faults are those that apply to this command.
type faults struct {
	active   []fault
	stateDir string
	out      *printer
	records  int // printed so far
}

// loadFaults reads the faults and uses up one of the times of each that is limited.
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
		if (f.Cmd == "" || slices.Contains(strings.Split(f.Cmd, ","), command)) && all.use(f) {
			all.active = append(all.active, f)
		}
	}
	return all, nil
}

// use takes one of the fault's times; false if there is none left. Each time
// is a file that only one process can create.
func (fs *faults) use(f fault) bool {
	for n := range f.Times {
		if create(fs.counter(f, fmt.Sprintf("times-%d", n))) {
			return true
		}
	}
	return f.Times == 0
}

// counter names a file of state that belongs to one fault.
func (fs *faults) counter(f fault, kind string) string {
	sum := sha256.Sum256([]byte(f.line))
	return filepath.Join(fs.stateDir, fmt.Sprintf("fault-%x-%s", sum[:6], kind))
}

// create reports whether it made the file, which did not exist.
func create(name string) bool {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
	return err == nil && file.Close() == nil
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

// connect reports whether the server can be reached.
func (fs *faults) connect(port string) bool {
	switch {
	case fs.find("refused") != nil:
		fs.out.clientError("Connect to server failed; check $P4PORT.", "TCP connect to "+port+" failed.", "connect: "+port+": Connection refused")
		return false
	case fs.find("trust") != nil:
		fs.out.lastMessage(keyNotTrusted, port, strings.TrimSuffix(strings.Repeat("5A:", 20), ":"))
		return false
	}
	return fs.proceed()
}

// before runs before each record; false ends the command.
func (fs *faults) before() bool {
	proceed := fs.proceed()
	fs.records++
	return proceed
}

// proceed reports whether the command goes on after the records printed so far.
func (fs *faults) proceed() bool {
	for _, f := range fs.active {
		if fs.records != f.After {
			continue
		}
		switch f.Fault {
		case "hang":
			_ = fs.out.stdout.Flush() // a caller that has gone away gets nothing
			for {
				time.Sleep(time.Hour)
			}
		case "drop":
			fs.out.lastMessage(partnerExited)
			fs.out.clientError(partnerExited.text)
			return false
		case "message":
			fs.out.lastMessage(f.message())
			return false
		}
	}
	return true
}

// message is the message that the fault asks for.
func (f fault) message() message {
	if m, known := faultMessages[f.ID]; known {
		return m
	}
	return message{f.Severity, f.Generic, f.Text}
}

// lags returns the fault if the server does not have a change yet. It gets the change
// some time after the first request for it.
func (fs *faults) lags(change int) *fault {
	f := fs.find("lag")
	if f == nil {
		return nil
	}
	name := fs.counter(*f, fmt.Sprintf("lag-%d", change))
	if stat, err := os.Stat(name); !create(name) && err == nil && time.Since(stat.ModTime()) >= f.lag {
		return nil
	}
	return f
}

// damages reports whether a fault says that the archive of a revision is damaged.
func (fs *faults) damages(r *revision) bool {
	f := fs.find("damaged")
	return f != nil && f.Path == fmt.Sprintf("%s#%d", r.Path, r.Rev)
}
