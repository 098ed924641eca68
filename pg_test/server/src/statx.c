/* Fails statx as old sandboxes do, so that no file has a creation time. Loaded by LD_PRELOAD. */

#include <errno.h>

int statx(void)
{
	errno = ENOSYS;
	return -1;
}
