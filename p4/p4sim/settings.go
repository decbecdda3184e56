package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// settings are the variables of the environment, and of p4sim.conf beside the
// executable; the environment overrides the file.
type settings map[string]string

func loadSettings(environ []string) (settings, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find p4sim.conf: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(executable), "p4sim.conf"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	s := settings{}
	for _, line := range slices.Concat(strings.Split(string(text), "\n"), environ) {
		if name, value, ok := strings.Cut(line, "="); ok {
			s[name] = value
		}
	}
	return s, nil
}

// stateDir makes the directory of the snapshots of git and of the state of faults.
func (s settings) stateDir() (string, error) {
	dir := s["P4SIM_STATE"]
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the state directory: %w; set P4SIM_STATE", err)
		}
		dir = filepath.Join(cache, "p4sim")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the state directory: %w", err)
	}
	return dir, nil
}

// permission is what every user has for all files.
func (s settings) permission() string { return cmp.Or(s["P4SIM_PERMISSION"], "super") }

// mayRead reports whether the permission includes reading: all but list do.
func (s settings) mayRead() bool { return s.permission() != "list" }
