package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	installed "github.com/criticizer/criticizer/internal/settings"
)

// An installation is the files of a Criticizer for one depot.
type installation struct {
	dir         string // everything below
	config      string // criticizer.yaml
	p4          string // the p4 command
	tool        string // the criticizer command, set up for this installation
	mail        string // mails of the inbox
	databaseURL string // file with the address of the database, which changes at each start
	faults      string // faults of the simulated Perforce server; need not exist
	// settings are the sections of the configuration. Each part adds its own.
	settings map[string]any
}

func newInstallation(stateDir, id string) (installation, error) {
	dir := filepath.Join(stateDir, id)
	in := installation{
		dir: dir, config: filepath.Join(dir, "criticizer.yaml"),
		p4: filepath.Join(dir, "bin", "p4"), tool: filepath.Join(dir, "bin", "criticizer"), mail: filepath.Join(dir, "mail"),
		databaseURL: filepath.Join(dir, "database.url"), faults: filepath.Join(dir, "p4sim-faults"),
		settings: map[string]any{"server_id": id, "starter": map[string]any{"spool_dir": filepath.Join(dir, "spool")}},
	}
	return in, os.MkdirAll(filepath.Dir(in.p4), 0o750)
}

// writeP4 writes the p4 command: p4sim and its settings. The worker runs p4 with a
// minimal environment, so the command has to set what p4sim needs.
func (in installation) writeP4(p4sim, depotPath string) error {
	if err := os.Remove(in.faults); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a run that was killed
		return fmt.Errorf("remove faults of an earlier run: %w", err)
	}
	return writeCommand(in.p4, p4sim, []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), // p4sim runs git, which reads the user's settings
		"P4SIM_FAULT_FILE=" + in.faults,
		"P4SIM_DEPOT=" + depotPath, "P4SIM_STATE=" + filepath.Join(in.dir, "p4sim"), "P4SIM_MAIL_DOMAIN=example.com",
	})
}

// writeTool writes the criticizer command with the settings of this installation.
func (in installation) writeTool(criticizer string, env []string) error {
	return writeCommand(in.tool, criticizer, append(env, "CRITICIZER_CONFIG="+in.config))
}

// writeCommand writes a script that runs program with env.
func writeCommand(path, program string, env []string) error {
	script := []string{"#!/bin/sh", "# Written by devstack."}
	for _, assignment := range env {
		name, value, _ := strings.Cut(assignment, "=")
		script = append(script, "export "+name+"="+shellQuote(value))
	}
	script = append(script, "exec "+shellQuote(program)+` "$@"`, "")
	if err := os.WriteFile(path, []byte(strings.Join(script, "\n")), 0o700); err != nil { //nolint:gosec // it is a command
		return fmt.Errorf("write command %s: %w", path, err)
	}
	return nil
}

// shellQuote makes s one word of a shell command.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// writeConfig writes the configuration file of worker and starter.
func (in installation) writeConfig() error {
	text, err := yaml.Dump(in.settings)
	if err == nil {
		err = os.WriteFile(in.config, append([]byte("# Written by devstack at each start.\n"), text...), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// secretFiles returns the variables that name the files of the worker's secrets, which
// criticizer keyset create makes, except the address of the database.
func (in installation) secretFiles() []string {
	env := []string{
		"CRITICIZER_DATABASE_URL_FILE=" + in.databaseURL, "CRITICIZER_REDACTION_KEY_FILE=" + filepath.Join(in.dir, "redaction-key"),
		"CRITICIZER_EVIDENCE_KEY_FILE=" + filepath.Join(in.dir, "evidence-key"),
	}
	for _, purpose := range installed.KeysetPurposes {
		env = append(env, "CRITICIZER_"+strings.ToUpper(purpose)+"_KEYSET_FILE="+filepath.Join(in.dir, purpose+"-keyset"))
	}
	return env
}
