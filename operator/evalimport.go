package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/criticizer/criticizer/eval"
)

// importCases implements criticizer eval import.
func importCases(ctx context.Context, args []string, c console) error {
	flags := c.flags("import", evalUsage)
	limit := flags.Int("limit", 0, "")
	clones := flags.String("clones", "", "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	if len(rest) != 3 || *limit < 0 {
		return badUsage("eval import wants swe-prbench or aacr-bench, the directory it is in and one to write to")
	}
	from, out := rest[1], rest[2]
	var done eval.Imported
	switch rest[0] {
	case "swe-prbench":
		if *clones != "" {
			return badUsage("swe-prbench needs no -clones: its diffs are in it")
		}
		done, err = eval.ImportSWEPRBench(from, out, *limit)
	case "aacr-bench":
		done, err = eval.ImportAACRBench(ctx, from, cmp.Or(*clones, filepath.Join(from, "repos")), out, *limit)
	default:
		return badUsage("eval import knows swe-prbench and aacr-bench: got %q", rest[0])
	}
	for _, why := range done.LeftOut {
		fmt.Fprintf(c.stderr, "left out: %s\n", printable(why))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "wrote %s to %s\n", plural(done.Cases, "case"), out)
	return nil
}
