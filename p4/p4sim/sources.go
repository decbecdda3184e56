package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// defaultMailDomain takes the place of the domains of git authors: they are
// real people, and nothing here may write to them.
const (
	defaultMailDomain = "example.test"
	keepMailDomain    = "keep"
)

// source finds out what kind of depot P4SIM_DEPOT names.
func (s settings) source() (string, source, error) {
	if s["P4SIM_DEPOT"] == "" {
		return "", nil, errors.New("no depot: set P4SIM_DEPOT to a recorded depot, a git repository or a .txtar file")
	}
	path, err := filepath.Abs(s["P4SIM_DEPOT"])
	if err != nil {
		return "", nil, fmt.Errorf("find depot: %w", err)
	}
	loc, err := s.location()
	if err != nil {
		return "", nil, err
	}
	if _, err := os.Stat(filepath.Join(path, recordedChanges)); err == nil {
		return path, recordedSource{dir: path}, nil
	}
	if strings.HasSuffix(path, ".txtar") {
		return path, textSource{path: path, loc: loc}, nil
	}
	return path, gitSource{dir: path}, nil
}

// openDepot opens the index of the depot, building what it lacks.
func (s *session) openDepot() (*depot, error) {
	reviewers, err := loadReviewers(s.settings["P4SIM_REVIEWERS"])
	if err != nil {
		return nil, err
	}
	path, src, err := s.settings.source()
	if err != nil {
		return nil, err
	}
	dir, err := s.stateDir()
	if err != nil {
		return nil, err
	}
	db, err := openIndex(indexPath(dir, path), src, func(int, int) {})
	if err != nil {
		return nil, fmt.Errorf("open depot %s: %w", path, err)
	}
	tx, err := db.Begin(false)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open depot %s: %w", path, err), db.Close())
	}
	d := &depot{db: db, tx: tx, contents: src.contents(tx), reviewers: reviewers, mailDomain: s.settings["P4SIM_MAIL_DOMAIN"]}
	d.hidden = strings.Fields(s.settings["P4SIM_HIDDEN"])
	switch src.(type) {
	case gitSource:
		d.mailDomain = cmp.Or(d.mailDomain, defaultMailDomain)
	case recordedSource:
		if len(d.reviewers) == 0 {
			d.reviewers[recordedReviewer.Name] = &recordedReviewer
		}
	}
	return d, nil
}

// loadReviewers reads lines of "pattern user email full name".
func loadReviewers(name string) (map[string]*user, error) {
	found := map[string]*user{}
	if name == "" {
		return found, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read P4SIM_REVIEWERS: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 3 {
			return nil, fmt.Errorf("read P4SIM_REVIEWERS: want pattern, user, email and name, got %q", line)
		}
		u := found[words[1]]
		if u == nil {
			u = &user{Name: words[1]}
			found[u.Name] = u
		}
		u.Email, u.FullName = words[2], cmp.Or(strings.Join(words[3:], " "), words[1])
		u.Reviews = append(u.Reviews, words[0])
	}
	return found, nil
}

// buildIndex is "p4sim index": it brings the index up to date and says how far it is.
func (s *session) buildIndex() error {
	path, src, err := s.settings.source()
	if err != nil {
		return err
	}
	dir, err := s.stateDir()
	if err != nil {
		return err
	}
	p := &progress{w: s.out.stderr, started: time.Now()}
	db, err := openIndex(indexPath(dir, path), src, p.show)
	if err != nil {
		return fmt.Errorf("index %s: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	return db.View(func(tx *bbolt.Tx) error {
		d := depot{tx: tx}
		_, err := fmt.Fprintf(s.out.stderr, "p4sim: indexed %s up to change %d in %s\n", path, d.lastChange(), time.Since(p.started).Round(time.Millisecond))
		return err
	})
}

// progress tells how far an index is, at most once a second.
type progress struct {
	w       io.Writer
	started time.Time
	shown   time.Time
}

func (p *progress) show(done, total int) {
	if done < total && time.Since(p.shown) < time.Second {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.w, "p4sim: %d of %d changes\n", done, total)
}
