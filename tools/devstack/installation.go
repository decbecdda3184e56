package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
)

// An installation is the files of a Criticizer for one depot.
type installation struct {
	dir    string // everything below
	config string // criticizer.yaml
	p4     string // the p4 command
	tool   string // the criticizer command, set up for this installation
	mail   string // mails of the inbox
}

func newInstallation(stateDir, id string) (installation, error) {
	dir := filepath.Join(stateDir, id)
	in := installation{
		dir: dir, config: filepath.Join(dir, "criticizer.yaml"),
		p4: filepath.Join(dir, "bin", "p4"), tool: filepath.Join(dir, "bin", "criticizer"), mail: filepath.Join(dir, "mail"),
	}
	return in, makeOpenDir(filepath.Dir(in.p4))
}

// writeP4 writes the p4 command: p4sim and its settings. The worker runs p4 with a
// minimal environment, so the command has to set what p4sim needs.
func (in installation) writeP4(p4sim, depotPath string) error {
	lines := []string{
		"#!/bin/sh",
		"# Written by devstack: simulates the p4 command.",
		"export PATH=" + shellQuote(os.Getenv("PATH")), // p4sim runs git,
		"export HOME=" + shellQuote(os.Getenv("HOME")), // which reads the user's settings
		"export P4SIM_DEPOT=" + shellQuote(depotPath),
		"export P4SIM_STATE=" + shellQuote(filepath.Join(in.dir, "p4sim")),
		"export P4SIM_MAIL_DOMAIN=example.com",
		"exec " + shellQuote(p4sim) + ` "$@"`,
	}
	return writeScript(in.p4, lines)
}

// writeTool writes the criticizer command with the settings of this installation.
func (in installation) writeTool(criticizer string, env []string) error {
	lines := []string{"#!/bin/sh", "# Written by devstack: criticizer for the installation in this directory."}
	for _, assignment := range append(env, "CRITICIZER_CONFIG="+in.config) {
		name, value, _ := strings.Cut(assignment, "=")
		lines = append(lines, "export "+name+"="+shellQuote(value))
	}
	return writeScript(in.tool, append(lines, "exec "+shellQuote(criticizer)+` "$@"`))
}

func writeScript(name string, lines []string) error {
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o700); err != nil { //nolint:gosec // it is a command
		return fmt.Errorf("write command %s: %w", name, err)
	}
	return nil
}

// shellQuote makes s one word of a shell command.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// settings differ between installations.
type settings struct {
	serverID        string
	temporalAddress string
	p4Port, p4User  string
	allowed         []string // depot paths; empty: from the environment
	modelURL        string   // empty: the default, or from the environment
	model           string
	smtpPort        int
	inboxURL        string
}

// writeConfig writes the configuration file of worker and starter.
func (in installation) writeConfig(s settings) error {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%s: %s\n", name, strconv.Quote(value)) }
	b.WriteString("# Written by devstack at each start.\n")
	line("server_id", s.serverID)
	b.WriteString("temporal:\n")
	line("  address", s.temporalAddress)
	line("  namespace", temporalNamespace)
	b.WriteString("starter:\n")
	line("  spool_dir", filepath.Join(in.dir, "spool"))
	b.WriteString("p4:\n")
	line("  command", in.p4)
	line("  port", s.p4Port)
	line("  user", s.p4User)
	line("  state_dir", filepath.Join(in.dir, "p4"))
	if len(s.allowed) > 0 {
		b.WriteString("  allowed_paths:\n")
		for _, path := range s.allowed {
			b.WriteString("    - " + strconv.Quote(path) + "\n")
		}
	}
	b.WriteString("llm:\n")
	line("  model", s.model)
	if s.modelURL != "" {
		line("  base_url", s.modelURL)
	}
	b.WriteString("mail:\n")
	line("  provider", "inbox")
	line("  host", loopback)
	fmt.Fprintf(&b, "  port: %d\n", s.smtpPort)
	line("  tls", "none")
	line("  from", "Criticizer <criticizer@example.com>")
	line("  inbox_url", s.inboxURL)
	if err := os.WriteFile(in.config, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// keptSecrets makes the worker's secrets, unless in.dir has them, and returns the
// variables that name their files. The address of the database changes at each
// start.
func (in installation) keptSecrets(database secret.Value) ([]string, error) {
	url := filepath.Join(in.dir, "database.url")
	errURL := os.WriteFile(url, []byte(database.Reveal()), 0o600)
	key, keyset := filepath.Join(in.dir, "redaction.key"), filepath.Join(in.dir, "artifact.keyset")
	_, errKey := keptSecret(key, randomText)
	_, errKeyset := keptSecret(keyset, newKeyset)
	return []string{
		"CRITICIZER_DATABASE_URL_FILE=" + url, "CRITICIZER_REDACTION_KEY_FILE=" + key, "CRITICIZER_ARTIFACT_KEYSET_FILE=" + keyset,
	}, errors.Join(errURL, errKey, errKeyset)
}
