// P4sim is a stand-in for the p4 command: it serves a depot from a file or a git
// repository, without a server and without a network. Tests, the
// demonstration and the benchmarks run it as "p4".
//
//	p4 [-G | -ztag] [-zprog=NAME] [-x -] COMMAND [flags] [arguments]
//
// It imitates what package p4 and tools/p4check.sh run: changes, describe, filelog, files,
// info, jobs, login -s, print, protects, reviews -c and users, with the flags in [commands].
// A FILE is a depot path, or a tree that ends in "/..."; * is not a wildcard. Records hold the
// fields that package p4, tools/p4check.sh and devstack read, in the server's order. The messages with
// their severities and generic codes, the chunks of a printed file and the exit statuses are as
// in recorded runs of the 2023.2 client and in "p4 help". Keywords are not expanded.
//
// A setting is an environment variable, or a line NAME=value of the file p4sim.conf beside
// the executable: package p4 gives p4 an environment of its own.
//
//	P4SIM_DEPOT        what to serve, see below; required
//	P4SIM_STATE        directory of the snapshots of git and of the state of faults; default p4sim in the user's cache directory
//	P4SIM_MAIL_DOMAIN  domain of all mail addresses, or "keep"; default example.test for git, otherwise keep
//	P4SIM_PERMISSION   what every user may do with all files, such as list; default super
//	P4SIM_CASE         case handling: sensitive (default) or insensitive
//	P4SIM_SERVICES     what the server is, such as commit-server; default replica with a fault lag, otherwise standard
//	P4SIM_LOG          file that gets the arguments of each run, as a line of JSON
//	P4SIM_FAULT        faults, one line of JSON each
//	P4SIM_FAULT_FILE   file of faults, read by every run; it need not exist
//
// Of a git repository, the first-parent history of HEAD, oldest first, is changes 1 to n,
// below //depot. Renames become pairs of moves, symbolic links and executables keep their
// type, content with a NUL byte is binary, submodules are left out. The local part of the
// author's address is the user's name.
//
// A .txtar file holds changes, each followed by its files. Paths are written as they are,
// with @, #, % and *; the word base64 after the file type decodes the content:
//
//	-- user vera vera@example.com Vera Cruz --
//	//depot/src/...                             (what the user subscribed to)
//	-- change 12 user=bruno old=9 --
//	The description. old is the number before the submit.
//	-- add text //depot/src/a b.c --
//	content
//	-- move/add text+x //depot/new.c <- //depot/old.c --
//	content (the deletion of the source is added)
//	-- job BUG-7 --
//	The text of a job that the change fixes.
//	-- change 13 pending --
//	A pending change, with an opened and a shelved file.
//	-- edit text //depot/src/a b.c --
//	-- edit text shelved //depot/src/a b.c --
//	content
//
// All faults have cmd, the commands they apply to, separated by commas (default all):
//
//	{"fault":"refused"}               connection refused
//	{"fault":"trust"}                 the server's key is not trusted
//	{"fault":"lag","for":"30s"}       a change is pending, without files and shelf, until that long after
//	                                  the first request for it
//	{"fault":"damaged","path":"//depot/a.c#2"}  the archive of a revision cannot be read
//	{"fault":"message","text":"Odd.","severity":3,"generic":1}
package main
