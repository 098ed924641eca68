/* Records the calls that make files of snowflake_ids durable in the file SHARED, loaded by LD_PRELOAD: the process, and "sync" or
   "rename" with the name of the file or folder. A call without an error makes one line. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void record(const char *call, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char line[256];
	int length = snprintf(line, sizeof line, "%d %s %s\n", (int) getpid(), call, name);
	int file = open(SHARED, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	if (file >= 0) {
		(void) !write(file, line, length);
		close(file);
	}
}

static int synced(int failed, int file)
{
	char link[64], path[4096];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", file);
	length = readlink(link, path, sizeof path - 1);
	if (!failed && length > 0) {
		path[length] = 0;
		record("sync", path);
	}
	return failed;
}

int fsync(int file)
{
	return synced(syscall(SYS_fsync, file), file);
}

int fdatasync(int file)
{
	return synced(syscall(SYS_fdatasync, file), file);
}

int rename(const char *old, const char *new)
{
	int failed = syscall(SYS_rename, old, new);

	if (!failed && strstr(new, "snowflake_ids"))
		record("rename", old);
	return failed;
}
