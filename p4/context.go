package p4

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review/pack"
)

// maxListed bounds the files of folders that are considered.
const maxListed = 5_000

// readContext adds the code around the change. Files outside of the change take one p4
// files and one p4 print. If these fail, the context has the files of the change only.
func (x *fetch) readContext(ctx context.Context) error {
	if x.cfg.Context.Tokens == 0 {
		return nil
	}
	p := pack.New(ctx, x.cfg.Context, x.Files)
	defer func() { x.Context = p.Context() }()
	specs, err := x.listSiblings(ctx, p.Candidates())
	if err != nil || len(specs) == 0 {
		return err
	}
	chosen := p.Choose(slices.Collect(maps.Keys(specs)))
	texts, err := x.printSiblings(ctx, chosen, specs)
	if err != nil || len(chosen) == 0 {
		return err
	}
	p.Add(ctx, chosen, texts)
	return ctx.Err()
}

// printSiblings returns the texts of the files whose revisions are in specs, if a review
// would read them.
func (x *fetch) printSiblings(ctx context.Context, files []string, specs map[string]string) (map[string]string, error) {
	var wanted []string
	for _, file := range files {
		wanted = append(wanted, specs[file])
	}
	if err := x.guard(ctx, wanted); err != nil || len(wanted) == 0 {
		return nil, err
	}
	printed, _ := x.newPrintout(wanted, 0)
	printed.maxBytes = x.cfg.Context.Bytes
	printed.isLast = true // a sibling is not waited for
	if err := x.Run(ctx, command.Cmd{Name: "print", Lines: wanted}, printed.add); err != nil {
		return nil, err
	}
	printed.endCurrent()
	texts := map[string]string{}
	for _, file := range files {
		c := printed.of(specs[file])
		if c.noText() != "" || !c.complete || !isIntact(c.data, "", c.size, c.fileType) {
			continue
		}
		charset, _ := charsets([]*content{c}, x.cfg.CharsetFallback)
		if text, why := c.decode(charset); why == "" {
			texts[file] = text
		}
	}
	return texts, nil
}

// listSiblings returns the revisions of the candidates that exist, by path as people
// write it. Paths that may not be read do not reach the command line.
func (x *fetch) listSiblings(ctx context.Context, candidates []pack.Lookup) (map[string]string, error) {
	at := ""
	if !x.Shelved {
		at = "@" + x.Number.String()
	}
	var lines []string
	for _, c := range candidates {
		switch spelled := encodePath(c.Path); {
		case c.Dir && x.mayShow(spelled+"/_") && !x.list.embargoesBelow(spelled): // all its files may be read
			lines = append(lines, spelled+"/*"+at)
		case !c.Dir && x.mayShow(spelled):
			lines = append(lines, spelled+at)
		}
	}
	specs := map[string]string{}
	if lines == nil {
		return specs, nil
	}
	err := x.Run(ctx, command.Cmd{Name: "files", Flags: []string{"-e"}, Lines: lines}, func(rec command.Record) error {
		if file := rec.Fields["depotFile"]; rec.Code == "stat" && len(specs) < maxListed && x.mayShow(file) && parseType(rec.Fields["type"]).skip() == "" {
			specs[x.path(file)] = revision(file, rec.Number("rev"))
		}
		if rec.Code == "error" && rec.Message().Skip != "" {
			return nil // one path does not exist
		}
		return rec.Err()
	})
	return specs, err
}

// mayShow reports whether a file outside of the change may be read and would be reviewed.
func (x *fetch) mayShow(file string) bool {
	return x.list.Check(file, x.info.CaseHandling) == nil && x.selection.ByPath(x.path(file)).Reason == ""
}

// encodePath spells a path as p4 does.
func encodePath(file string) string {
	return strings.NewReplacer("%", "%25", "@", "%40", "#", "%23", "*", "%2A").Replace(file)
}
