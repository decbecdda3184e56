package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// settings are the P4SIM_ variables; see the package comment for what each
// means. A variable of the environment wins over the file.
type settings map[string]string

func loadSettings(env map[string]string) (settings, error) {
	s := settings{}
	name, required := env["P4SIM_CONFIG"], true
	if name == "" {
		executable, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the configuration beside p4sim: %w", err)
		}
		name, required = filepath.Join(filepath.Dir(executable), "p4sim.conf"), false
	}
	text, err := os.ReadFile(name)
	if err != nil && required {
		return nil, fmt.Errorf("read P4SIM_CONFIG: %w", err)
	}
	maps.Copy(s, assignments(string(text)))
	for key, value := range env {
		if strings.HasPrefix(key, "P4SIM_") {
			s[key] = value
		}
	}
	return s, nil
}

// stateDir is where indexes and counters of faults are kept.
func (s settings) stateDir() (string, error) {
	dir := s["P4SIM_STATE"]
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a place for the index: %w; set P4SIM_STATE to a directory", err)
		}
		dir = filepath.Join(cache, "p4sim")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make state directory: %w", err)
	}
	return dir, nil
}

// location is the server's time zone: plain reports show its local time.
func (s settings) location() (*time.Location, error) {
	loc, err := time.LoadLocation(cmp.Or(s["P4SIM_TZ"], "UTC"))
	if err != nil {
		return nil, fmt.Errorf("read P4SIM_TZ: %w", err)
	}
	return loc, nil
}
