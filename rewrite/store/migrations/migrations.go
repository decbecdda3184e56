// Package migrations holds the schema of the rewrite queue as numbered SQL files. Until the
// first release there is one, which is edited in place; a released file never changes, and
// every later change of the schema is a new file.
package migrations

import "embed"

// FS holds the files.
//
//go:embed *.sql
var FS embed.FS
