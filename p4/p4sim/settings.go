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

// stateDir makes the directory of the index and of the fault counters.
func (s settings) stateDir() (string, error) {
	dir := s["P4SIM_STATE"]
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the directory of the index: %w; set P4SIM_STATE", err)
		}
		dir = filepath.Join(cache, "p4sim")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the state directory: %w", err)
	}
	return dir, nil
}

// The values of P4SIM_MAIL_DOMAIN. The domains of git authors are replaced by
// default: the authors are real people, and a test must not write to them.
const (
	defaultMailDomain = "example.test"
	keepMailDomain    = "keep"
)

// source returns the depot that P4SIM_DEPOT names, its absolute path, and the
// domain of the users' mail addresses: empty if they keep their own.
func (s settings) source() (src source, path, mailDomain string, err error) {
	if s["P4SIM_DEPOT"] == "" {
		return nil, "", "", errors.New("no depot: set P4SIM_DEPOT to a git repository, a recorded depot or a .txtar file")
	}
	if path, err = filepath.Abs(s["P4SIM_DEPOT"]); err != nil {
		return nil, "", "", fmt.Errorf("find the depot: %w", err)
	}
	mailDomain = s["P4SIM_MAIL_DOMAIN"]
	recorded, isRecorded := findRecorded(path)
	switch {
	case strings.HasSuffix(path, ".txtar"):
		src = txtarSource{path}
	case isRecorded:
		src = recorded
	default:
		src, mailDomain = gitSource{path}, cmp.Or(mailDomain, defaultMailDomain)
	}
	if mailDomain == keepMailDomain {
		mailDomain = ""
	}
	return src, path, mailDomain, nil
}
