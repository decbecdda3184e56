package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/criticizer/criticizer/store/artifact"
)

// keptSecret reads the secret in path, or makes one and writes it there: data of
// an earlier run can only be read with the secret of that run.
func keptSecret(path string, generate func() (string, error)) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the secret of an earlier run: %w", err)
	}
	made, err := generate()
	if err != nil {
		return "", fmt.Errorf("make %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(made+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write secret: %w", err)
	}
	return made, nil
}

// randomText makes a password or key.
func randomText() (string, error) { return rand.Text() + rand.Text(), nil }

// newKeyset makes a keyset for artifacts.
func newKeyset() (string, error) {
	keyset, err := artifact.NewKeyset()
	return keyset.Reveal(), err
}
