package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// writeRecorded writes a recorded depot of changelists whose archives are contents.
func writeRecorded(t *testing.T, changes []recordedChange, contents map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	list, err := os.Create(filepath.Join(dir, "changelists.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if err := json.NewEncoder(list).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(dir, "contents.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(archive)
	packed := tar.NewWriter(zipped)
	for name, content := range contents {
		if err := packed.WriteHeader(&tar.Header{Name: "contents/" + name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := packed.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{packed, zipped, archive, list} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRecordedDepot(t *testing.T) {
	t.Parallel()
	dir := writeRecorded(t, []recordedChange{
		{Change: 100, User: "ann", Client: "ann-ws", Time: 906681352, Status: "submitted", Desc: "Begin.\n", Files: []recordedFile{
			{DepotFile: "//depot/tool/main.c", Rev: 1, Action: "add", Type: "text+k", Archive: "A1"},
			{DepotFile: "//depot/tool/old.c", Rev: 4, Action: "add", Type: "text", Archive: "B1"},
		}},
		{Change: 120, User: "bob", Client: "bob-ws", Time: 906681999, Status: "submitted", Desc: "Mend.\n", Files: []recordedFile{
			{DepotFile: "//depot/tool/main.c", Rev: 2, Action: "edit", Type: "text+k", Archive: "A2"},
			{DepotFile: "//depot/tool/old.c", Rev: 5, Action: "delete", Type: "text"},
		}},
		{Change: 130, User: "ann", Client: "ann-ws", Time: 906682999, Status: "pending", Desc: "Later.\n"},
	}, map[string]string{"A1": "/* $Id$ */\nint a;\n", "A2": "/* $Id$ */\nint b;\n", "B1": "old\n"})
	env := []string{"P4SIM_DEPOT=" + dir, "P4SIM_STATE=" + t.TempDir()}

	if got := column(records(t, env, "changes", "-s", "submitted"), "change"); got != "120 100" {
		t.Errorf("submitted changes are %q", got)
	}
	const expanded = "/* $Id: //depot/tool/main.c#2 $ */\nint b;\n"
	holds(t, records(t, env, "describe", "120")[0], record{
		"user": "bob", "time": "906681999", "path": "//depot/tool/*", "rev0": "2", "fileSize0": fmt.Sprint(len(expanded)),
		"digest0": fmt.Sprintf("%X", md5.Sum([]byte(expanded))), "action1": "delete", "rev1": "5", "digest1": "-",
	})
	holds(t, records(t, env, "print", "//depot/tool/main.c#2")[1], record{"data": expanded})
	holds(t, records(t, env, "print", "//depot/tool/old.c#4")[1], record{"data": "old\n"})
	holds(t, records(t, env, "describe", "130")[0], record{"status": "pending", "depotFile0": "-"})
	holds(t, records(t, env, "reviews", "-c", "120")[0], record{"user": "ann", "email": "ann@example.com"})
}
