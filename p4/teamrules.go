package p4

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// Limits of the files with rule packs of teams.
const (
	maxRuleFiles = 20
	maxRuleBytes = 64_000 // of one file; the text of a longer one is left out
)

// checkRules returns an error for rule files that may not be read.
func checkRules(list AllowList, paths []string, caseHandling string) error {
	if len(paths) > maxRuleFiles {
		return fmt.Errorf("%d rule files: give %d at most", len(paths), maxRuleFiles)
	}
	for _, path := range paths {
		if err := list.Check(path, caseHandling); err != nil {
			return fmt.Errorf("rule file %q: %w", path, err)
		}
	}
	return nil
}

// readRules reads the rule files as they were before the change.
func (x *fetch) readRules(ctx context.Context) ([]review.RuleFile, error) {
	if err := x.guard(ctx, x.cfg.Rules); err != nil {
		return nil, err
	}
	if x.Shelved {
		return x.printRules(ctx, x.cfg.Rules, "")
	}
	return x.printRules(ctx, x.cfg.Rules, fmt.Sprintf("@%d", x.Number-1))
}

// Rules reads the rule files of the configuration as they are.
func (f *ChangeFetcher) Rules(ctx context.Context) ([]review.RuleFile, error) {
	s, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkRules(f.list, f.cfg.Rules, s.info.CaseHandling); err != nil {
		return nil, failure.Errorf(failure.PathNotAllowed, "read rules: %w", err)
	}
	return s.printRules(ctx, f.cfg.Rules, "")
}

// printRules prints files at a revision, with one command. A file that does not exist
// there has revision 0, and so has one that may not be read, which is an error, too.
func (s *server) printRules(ctx context.Context, paths []string, at string) ([]review.RuleFile, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	files := make([]review.RuleFile, len(paths))
	byPath := map[string]*review.RuleFile{}
	lines := make([]string, len(paths))
	for i, path := range paths {
		files[i].Path, lines[i] = path, path+at
		byPath[s.fold(path)] = &files[i]
	}
	current := &review.RuleFile{}
	var unread error // of files about which the server only warns
	err := s.Run(ctx, command.Cmd{Name: "print", Lines: lines}, func(rec command.Record) error {
		switch file := byPath[s.fold(rec.Fields["depotFile"])]; {
		case rec.Code == "error":
			m := rec.Message()
			if m.Skip == review.SkipPurged {
				return nil // it does not exist
			}
			if m.Skip != "" {
				unread = failure.Errorf(m.Class, "read rules: %s", m.Text)
			}
			return rec.Err()
		case rec.Code == "stat" && file != nil && actionSkip(review.Action(rec.Fields["action"])) == "":
			current = file
			current.Revision = rec.Number("rev")
		case rec.Code == "stat":
			current = &review.RuleFile{}
		case rec.IsContent():
			data := rec.Fields["data"]
			current.Text += data[:min(len(data), max(0, maxRuleBytes+1-len(current.Text)))]
		}
		return nil
	})
	for i := range files {
		if len(files[i].Text) > maxRuleBytes {
			files[i].Text = ""
		}
		if files[i].Text != "" {
			files[i].Digest = fmt.Sprintf("%x", sha256.Sum256([]byte(files[i].Text)))
			files[i].Text = strings.ToValidUTF8(files[i].Text, "\uFFFD")
		}
	}
	return files, cmp.Or(err, unread)
}
