// Package docs holds the pages, so that a host without a clone can print them.
package docs

import "embed"

// Pages are the pages of this folder, as criticizer help prints them.
//
//go:embed *.md
var Pages embed.FS
