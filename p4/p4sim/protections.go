package main

import (
	"fmt"
	"slices"
	"strings"
)

// A protection is one line of the protections table.
type protection struct{ perm, user, host, path string }

// permissions are in ascending order; each includes those before it.
var permissions = []string{"list", "read", "open", "write", "admin", "super"}

// protections parses P4SIM_PROTECTIONS; without it everybody has every permission.
func (s settings) protections() ([]protection, error) {
	if s["P4SIM_PROTECTIONS"] == "" {
		return []protection{{"super", "*", "*", "//..."}}, nil
	}
	var table []protection
	for line := range strings.SplitSeq(s["P4SIM_PROTECTIONS"], ";") {
		words := strings.Fields(line)
		if len(words) != 5 || words[1] != "user" || !slices.Contains(permissions, words[0]) {
			return nil, fmt.Errorf("read P4SIM_PROTECTIONS: %q: want PERMISSION user NAME HOST PATH", line)
		}
		table = append(table, protection{words[0], words[2], words[3], words[4]})
	}
	return table, nil
}

// may reports whether every user has the permission for a path: the highest of the
// lines after the last one that excludes the path.
func (s *session) may(permission, path string) bool {
	granted := false
	for _, p := range s.table {
		excluded, excludes := strings.CutPrefix(p.path, "-")
		switch {
		case excludes && s.depot.matches(excluded, path):
			granted = false
		case s.depot.matches(p.path, path):
			granted = granted || slices.Index(permissions, p.perm) >= slices.Index(permissions, permission)
		}
	}
	return granted
}

// protects prints the table.
func (s *session) protects(flags, []string) error {
	for i, p := range s.table {
		path, excludes := strings.CutPrefix(p.path, "-")
		record := []field{{"perm", p.perm}, {"host", p.host}, {"user", p.user}, {"line", fmt.Sprint(i + 1)}, {"depotFile", path}}
		if excludes {
			record = append(record, field{"unmap", ""})
		}
		s.out.record(record)
	}
	return nil
}
