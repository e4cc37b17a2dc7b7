{"profile":1,"functions":[
{"func":0,"name":"by_one","key":"0xe10023afbb5d0c82","calls":2000,"arguments":[null],"branches":[],"targets":[],"values":[]},
{"func":2,"name":"count","key":"0x510735d1d61602f4","calls":1,"arguments":["0x7d0","0x0"],"branches":[{"at":4,"sides":[0,2000]},{"at":10,"sides":[1999,1]}],"targets":[{"at":7,"targets":[{"index":0,"func":0,"calls":2000}],"others":0}],"values":[{"at":2,"bits":"0x1388"}]}
]}
