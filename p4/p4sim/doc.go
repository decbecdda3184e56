// P4sim is a stand-in for the p4 command. It prints, byte for byte, what the
// 2023.2 client prints for the commands that only read, in all its forms:
// plain, -ztag, -ztag -Mj, -G, -s and -e. Tests hold it against recorded runs
// of the real client. Commands that write are refused as the server refuses
// them; nothing is ever sent over a network.
//
//	p4 [options] command [arg ...]   as p4 does
//	p4sim index                      brings the index of the depot up to date
//
// # Settings
//
// A setting is an environment variable, or a line NAME=value in the file that
// P4SIM_CONFIG names, or else in p4sim.conf beside the executable: a caller
// that gives p4 an environment of its own needs only that file.
//
//	P4SIM_DEPOT        what to serve, see below. Required.
//	P4SIM_STATE        directory of indexes and of counted faults; default p4sim in the user's cache directory
//	P4SIM_REVIEWERS    file of subscriptions, one per line: pattern user email full name
//	P4SIM_MAIL_DOMAIN  domain of all e-mail addresses, or "keep"; default example.test for git, else as written
//	P4SIM_HIDDEN       patterns of files the user may not see, separated by spaces
//	P4SIM_TICKET       if set, commands need this ticket: P4PASSWD, -P or the tickets file
//	P4SIM_ROOT         if set, the workspace exists there and maps //depot/... (for "where")
//	P4SIM_TZ           the server's time zone; default UTC
//	P4SIM_SERVER_ID    what info says; default p4sim
//	P4SIM_CASE         sensitive (default), insensitive or hybrid; only info says so
//	P4SIM_UNICODE      if set, info says that the server is in unicode mode
//	P4SIM_LOG          file that gets one JSON line per run: argv, environment with values, exit code
//	P4SIM_FAULT        faults, see below
//	P4SIM_FAULT_FILE   file of faults, read again by every run; it need not exist
//
// # Depots
//
// A git repository: the first-parent history of HEAD, oldest first, is changes
// 1 to n; merges show what they brought to their first parent. Paths lie under
// //depot. Renames become pairs of moves, symbolic links and executables keep
// their kind, content with NULs is binary, submodules are left out. An author
// is an account named by the local part of the e-mail address. A ref
// refs/shelves/N, with N above all commits, is the shelf of the pending change N:
// what its commit changed. If nobody
// subscribed, the reviewers of a change are the up to three users, other than
// its author, who made the revisions before it.
//
// A recorded depot: a directory with jam-changelists.jsonl and
// jam-contents.tar.gz.
//
// A .txtar file, written by hand, made of changes, each followed by its files:
//
//	-- user vera vera@example.com Vera Cruz --
//	//depot/src/...
//	-- change 12 user=bruno client=bruno-ws time=2024/05/01:10:00:00 --
//	The description.
//	-- add text //depot/src/a b.c --
//	content
//	-- move/add text+x //depot/new.c <- //depot/old.c --
//	content
//	-- delete //depot/gone.c --
//	-- job BUG-7 user=vera status=closed --
//	What the change fixes. Only describe tells of it.
//	-- change 13 pending --
//	On its way.
//	-- edit text //depot/src/a b.c --
//	-- edit text shelved //depot/src/a b.c --
//	content
//
// A change may also be restricted, latin1 (its description) and old=N (its
// number before it was submitted). Between the action and the path stands the
// file type, and what to do to the content: base64 decodes it, nonl drops its
// last line feed, crlf and latin1 and utf16bytes encode it. Paths are written
// as they are, with @, #, % and *. The deletion that goes with a move/add is
// added by itself. Actions are Perforce's, purge and archive included.
//
// Git and recorded depots are indexed on first use, which takes about a minute
// for 50,000 commits; new commits are added as they come.
//
// # Faults
//
// A fault is one line of JSON; several may be active. Fields of all faults are
// cmd, the commands it strikes, separated by commas (default all); times, how
// often it strikes (default always); and note, which has no effect. What is
// counted is counted across processes, per text of the line: another note
// starts anew. Where it says after, the command prints that many records first.
//
//	{"fault":"refused"}                     connection refused
//	{"fault":"trust"}                       the server's key is not known; text is the fingerprint
//	{"fault":"reject","text":"..."}         a broker's words instead of the answer, exit code 0
//	{"fault":"noise","text":"..."}          a trigger's words before the answer
//	{"fault":"hang","after":2}              no answer, ever
//	{"fault":"drop","after":2}              the server goes away
//	{"fault":"slow","for":"50ms"}           a wait before each record
//	{"fault":"lag","for":"30s"}             a change is unknown for that time, from the first question on
//	{"fault":"message","id":"MsgServer::LoginExpired","after":2}
//	{"fault":"message","id":"MsgServer::TooManyCommands","args":{"maxCommands":"100"},"times":2}
//	{"fault":"message","text":"Odd.","severity":3,"generic":1}
//	{"fault":"latin1"}                      descriptions that are not UTF-8
//	{"fault":"giant","bytes":4194304}       descriptions that are long lines
//	{"fault":"stderr","text":"..."}         words on stderr, exit code as it was
//	{"fault":"exit","code":1}               all is printed, but the exit code is this
//
// A message in the catalogue is asked for by id, any other by its text.
package main
